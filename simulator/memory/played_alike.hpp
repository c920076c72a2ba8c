// Whether two workloads that differ in what a card decides of them are played alike: the same
// tensors in the same order, in the same allocator, so that one's play is the other's.
//
// Of 16 bits nothing that is played asks whether they are bf16 or fp16, but for
//   - the gradient of a softmax whose scores are stored, which fp16 returns sooner (keep_scores),
//   - frozen weights of the other 16 bits, which autocast copies (stores_frozen_apart),
//   - moments in bf16, beside which bf16 weights' masters lack their upper half (stored_base),
//   - what resolved_for sets in a framework's row.
#pragma once

#include "simulator/workload.hpp"

namespace shardwise {

constexpr bool same_tensors(DType a, DType b) {
  const auto half = [](DType d) { return d == DType::fp16 || d == DType::bf16; };
  return a == b || (half(a) && half(b));
}

// One row of a framework, as resolved_for settles it for either format.
inline bool settled_alike(const Framework& a, const Framework& b) {
  if (!same_tensors(a.formats.frozen_dtype, b.formats.frozen_dtype) ||
      !same_tensors(a.gradients.dtype, b.gradients.dtype) ||
      !same_tensors(a.gradients.reduce_dtype, b.gradients.reduce_dtype) ||
      !same_tensors(a.adapters.dtype, b.adapters.dtype))
    return false;
  return a.formats.pretrain_weights == b.formats.pretrain_weights &&
         a.formats.finetune_weights == b.formats.finetune_weights &&
         a.gradients.life == b.gradients.life &&
         a.gradients.copy_while_accumulating == b.gradients.copy_while_accumulating &&
         a.quantized.recasts_tables == b.quantized.recasts_tables &&
         a.update.fp32_gradient_at_step == b.update.fp32_gradient_at_step &&
         a.update.wide_gradient_checks == b.update.wide_gradient_checks &&
         a.update.checks_partition == b.update.checks_partition;
}

// REQUIRES the same question in the same framework, but for the cards.
inline bool played_alike(const Workload& a, const Workload& b) {
  const Framework &f = a.framework, &g = b.framework;
  if (f.attention.kernel != g.attention.kernel ||
      f.process.expandable_segments != g.process.expandable_segments ||
      f.attention.writes_grouped_out != g.attention.writes_grouped_out ||
      f.attention.by_operators != g.attention.by_operators ||
      f.experts.loops_grouped_products != g.experts.loops_grouped_products ||
      f.narrow.weights_twice != g.narrow.weights_twice || f.narrow.attention != g.narrow.attention)
    return false;
  if (a.compute == b.compute) return true;
  const bool tells_halves_apart = f.attention.kernel == AttentionKernel::eager ||
                                  a.optimizer->format == StateFormat::bf16 ||
                                  b.optimizer->format == StateFormat::bf16;
  if (a.stores_frozen_apart() != b.stores_frozen_apart()) return false;
  return !tells_halves_apart && same_tensors(a.compute, b.compute) && settled_alike(f, g);
}

}  // namespace shardwise
