// Where the residual stream is fp32 beside products of 16 bits.
#include "simulator/graphs/graph_builder.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {

bool gathers_in_16_bits(const Workload& w, const ParallelPlan& plan) {
  return shards_weights(w.framework, plan) && plan.shard_ranks() > 1 &&
         !w.framework.sharding.gathers_as_stored;
}

bool adapters_gathered_in_16_bits(const Workload& w, const ParallelPlan& plan) {
  if (w.weights() != WeightRecipe::fp32_with_half_compute) return false;
  return gathers_in_16_bits(w, plan) ||
         (w.framework.sharding.wraps_one_rank && plan.shard_ranks() == 1);
}

bool casts_weights(const Workload& w, const ParallelPlan& plan) {
  if (!w.framework.formats.autocast || w.activation_dtype() == DType::fp32) return false;
  if (gathers_in_16_bits(w, plan)) return false;
  return w.trains_base() ? w.weights() == WeightRecipe::fp32_with_half_compute
                         : w.stores_frozen_apart();
}

bool widens_experts(const Workload& w, const ParallelPlan& plan) {
  const Framework& f = w.framework;
  return f.experts.torch_grouped_products && !f.experts.casts_grouped_products &&
         f.formats.autocast && w.model.moe && w.activation_dtype() != DType::fp32 &&
         !gathers_in_16_bits(w, plan) && stored_expert_weight(w, plan, w.trains_base()) == 4;
}

bool returns_wide(const Workload& w, const ParallelPlan& plan) {
  const Quantization base = w.adapter.base;
  if (!w.freezes_quantized() || base == Quantization::gptq || is_operand(base)) return false;
  if (shards_weights(w.framework, plan) && plan.shard_ranks() > 1) return false;
  return w.framework.quantized.upcasts_unquantized && w.activation_dtype() != DType::fp32;
}

// Autocast takes powers in fp32, of which alternating updates make the length of their streams.
bool widens_stream(const Workload& w, const ParallelPlan& plan) {
  const bool powers =
      w.model.altup && w.framework.formats.autocast && w.activation_dtype() != DType::fp32;
  return casts_weights(w, plan) || returns_wide(w, plan) || powers;
}

bool sums_head_sharded(const Workload& w, const ParallelPlan& plan) {
  return w.framework.loss.slices_go_back && w.framework.loss.kind == LossKind::chunked &&
         shards_weights(w.framework, plan) && plan.shard_ranks() > 1;
}

bool cuts_graphs(const Workload& w, const ParallelPlan& plan) {
  const bool replicated = plan.data * plan.context > 1 && plan.zero_stage <= 1;
  return replicated && w.framework.layers.cuts_compiled_graphs &&
         w.framework.layers.kernels == KernelStyle::compiled;
}

SeenSharding seen_sharding(const Workload& w, const ParallelPlan& plan) {
  return {widens_stream(w, plan),
          adds_gradient(w, plan),
          row(w.method).adapter && adapters_gathered_in_16_bits(w, plan),
          sums_head_sharded(w, plan),
          widens_experts(w, plan),
          cuts_graphs(w, plan)};
}

}  // namespace shardwise
