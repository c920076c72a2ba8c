// Whether two workloads that differ in what a card decides of them are played alike: the same
// tensors in the same order, in the same allocator, so that one's play is the other's.
//
// Of 16 bits nothing that is played asks whether they are bf16 or fp16, but for
//   - the gradient of a softmax whose scores are stored, which fp16 returns sooner (keep_scores),
//   - moments in bf16, beside which bf16 weights' masters lack their upper half (stored_base),
//   - what resolved_for sets in a framework's row.
#pragma once

#include <array>

#include "simulator/workload.hpp"

namespace shardwise {

constexpr bool same_tensors(DType a, DType b) {
  const auto half = [](DType d) { return d == DType::fp16 || d == DType::bf16; };
  return a == b || (half(a) && half(b));
}

// One row of a framework, as resolved_for settles it for either format.
inline bool settled_alike(const Framework& a, const Framework& b) {
  constexpr std::array<DType Framework::*, 4> widths{
      &Framework::frozen_dtype, &Framework::gradient_dtype, &Framework::reduce_dtype,
      &Framework::adapter_dtype};
  for (const auto width : widths)
    if (!same_tensors(a.*width, b.*width)) return false;
  return a.pretrain_weights == b.pretrain_weights && a.finetune_weights == b.finetune_weights &&
         a.gradient_life == b.gradient_life &&
         a.gradient_copy_while_accumulating == b.gradient_copy_while_accumulating &&
         a.recasts_tables == b.recasts_tables &&
         a.fp32_gradient_at_step == b.fp32_gradient_at_step &&
         a.wide_gradient_checks == b.wide_gradient_checks &&
         a.checks_partition == b.checks_partition;
}

// REQUIRES the same question in the same framework, but for the cards.
inline bool played_alike(const Workload& a, const Workload& b) {
  const Framework &f = a.framework, &g = b.framework;
  if (f.attention != g.attention || f.expandable_segments != g.expandable_segments ||
      f.writes_grouped_attention_out != g.writes_grouped_attention_out ||
      f.attends_by_operators != g.attends_by_operators ||
      f.loops_grouped_products != g.loops_grouped_products ||
      f.narrow_weights_twice != g.narrow_weights_twice || f.narrow_attention != g.narrow_attention)
    return false;
  if (a.compute == b.compute) return true;
  const bool tells_halves_apart = f.attention == AttentionKernel::eager ||
                                  a.optimizer->format == StateFormat::bf16 ||
                                  b.optimizer->format == StateFormat::bf16;
  return !tells_halves_apart && same_tensors(a.compute, b.compute) && settled_alike(f, g);
}

}  // namespace shardwise
