#include "simulator/memory/run_buffers.hpp"

#include <algorithm>

namespace shardwise {
namespace {

// The reduction's result, in its own format where that is the narrower one.
std::int64_t reduced_copy(const Workload& w, const LayerState& total) {
  const double gradient = stored_where_trained(w, w.trains_base()).gradient;
  if (gradient == 0) return 0;
  const double share =
      std::min(1.0, bytes_per_element(w.framework.gradients.reduce_dtype) / gradient);
  return static_cast<std::int64_t>(share * static_cast<double>(total.gradients));
}

// Gradients are reduced over context ranks too: each has seen a part of the sequence.
bool reduces_alone(const ParallelPlan& plan) { return plan.data * plan.context == 1; }

// One for the inputs of column-parallel matrices, one for the gradients of row-parallel ones.
void add_gather_buffers(const Workload& w, const ParallelPlan& plan,
                        std::vector<std::int64_t>& out) {
  if (!w.framework.parallel.keeps_gather_buffers || plan.tensor == 1 || !plan.sequence_parallel)
    return;
  const std::int64_t tokens = plan.microbatch * w.tokens_per_sample() / plan.context;
  out.insert(out.end(), 2, 2 * tokens * w.model.hidden);
}

// DeepSpeed's ZeRO-1 and 2 make their buckets as a backward pass begins and release them as it ends
// (deepspeedai/DeepSpeed @edaa722126 runtime/zero/stage_1_and_2.py:828-834, 960 and 2491-2514:
// _release_ipg_buffers, setup_buckets); ZeRO-3's stay (stage3.py:733). A pipeline's are made in its
// reduction.
bool made_for_a_pass(const ParallelPlan& plan) {
  return (plan.zero_stage == 1 || plan.zero_stage == 2) && plan.pipeline == 1;
}

// DeepSpeed's, as long as configured from stage 2 on, on one GPU too.
void add_buckets(const Workload& w, const ParallelPlan& plan, const LayerState& total,
                 std::vector<std::int64_t>& out) {
  const Framework& f = w.framework;
  const bool fixed = plan.zero_stage >= 2;
  if (f.gradients.buffers_from_stage_2 && !fixed) return;
  const Bytes bucket = f.gradient_bucket_at(plan.zero_stage);
  // ZeRO-3 has one in any case (DeepSpeed runtime/zero/stage3.py, __setup_for_real_optimizer).
  const int buffers =
      plan.zero_stage >= 3 ? std::min(f.gradients.reduce_buffers, 1) : f.gradients.reduce_buffers;
  for (int i = 0; i < buffers; ++i)
    out.push_back(fixed ? bucket.value : std::min(bucket.value, total.unsharded_gradients));
}

// Of what goes from stage to stage.
std::int64_t at_boundary(const Workload& w, const ParallelPlan& plan, const LayerGraph& graph,
                         TensorIndex tensor) {
  const std::int64_t whole = graph.tensors[static_cast<std::size_t>(tensor)].bytes;
  return plan.sequence_parallel || w.framework.parallel.whole_stage_outputs ? whole
                                                                            : whole / plan.tensor;
}

}  // namespace

std::vector<std::int64_t> run_buffers(const Workload& w, const ParallelPlan& plan,
                                      const LayerState& total) {
  const Framework& f = w.framework;
  std::vector<std::int64_t> out;
  add_gather_buffers(w, plan, out);
  if (reduces_alone(plan) && plan.zero_stage < 2) return out;
  // DDP's second copy of the gradients, also under ZeroRedundancyOptimizer, which steps what DDP
  // has reduced (PyTorch torch/distributed/optim/zero_redundancy_optimizer.py).
  if (f.gradients.bucket_copies && plan.zero_stage <= 1)
    out.push_back(f.gradients.life == GradientLife::persistent ? total.unsharded_gradients
                                                               : reduced_copy(w, total));
  if (!made_for_a_pass(plan)) add_buckets(w, plan, total, out);
  return out;
}

std::vector<std::int64_t> pass_buffers(const Workload& w, const ParallelPlan& plan,
                                       const LayerState& total) {
  std::vector<std::int64_t> out;
  const bool idle = reduces_alone(plan) && plan.zero_stage < 2;
  if (made_for_a_pass(plan) && !idle) add_buckets(w, plan, total, out);
  return out;
}

std::int64_t reduced_at_end(const Workload& w, const ParallelPlan& plan, const LayerState& total) {
  const Framework& f = w.framework;
  if (reduces_alone(plan) || plan.zero_stage >= 2) return 0;
  if (f.gradients.life == GradientLife::persistent) {
    const double wide = bytes_per_element(f.gradients.dtype);
    const double sent = bytes_per_element(f.gradients.reduce_dtype);
    if (!f.gradients.reduces_flat_gradient || sent >= wide) return 0;
    return static_cast<std::int64_t>(sent / wide * static_cast<double>(total.gradients));
  }
  if (!f.gradients.buffers_from_stage_2 || f.gradients.reduce_buffers == 0) return 0;
  return std::min(f.gradient_bucket_at(plan.zero_stage).value, total.unsharded_gradients);
}

std::vector<std::int64_t> flat_buckets(const Workload& w, const ParallelPlan& plan,
                                       const std::vector<std::vector<LayerHoldings>>& layers) {
  std::vector<std::int64_t> buckets;
  if (!w.framework.gradients.reduces_flat_buckets || reduces_alone(plan) || plan.zero_stage >= 2)
    return buckets;
  const std::int64_t most = w.framework.gradient_bucket_at(plan.zero_stage).value / 2;
  std::int64_t elements = 0;
  const auto close = [&] {
    if (elements > 0) buckets.push_back(elements);
    elements = 0;
  };
  for (const auto& chunk : layers)
    for (const LayerHoldings& h : chunk)
      for (const Operator& op : h.graph->operators) {
        elements += op.weight_gradient_elements;
        if (elements > most) close();
      }
  close();
  return buckets;
}

std::int64_t bytes_kept_of_sent(const Workload& w, const ParallelPlan& plan,
                                const LayerDefinition& last) {
  const bool sends = plan.pipeline > 1 && last.role != LayerRole::head;
  if (!w.framework.parallel.holds_stage_outputs || !sends) return 0;
  return at_boundary(w, plan, last.graph, last.graph.output);
}

std::vector<std::int64_t> receive_buffers(const Workload& w, const ParallelPlan& plan,
                                          const LayerDefinition& first,
                                          const LayerDefinition& last) {
  std::vector<std::int64_t> out;
  if (!w.framework.parallel.keeps_receive_buffers || plan.pipeline == 1) return out;
  if (first.role != LayerRole::embedding)
    out.push_back(at_boundary(w, plan, first.graph, first.graph.input));
  if (last.role != LayerRole::head)
    out.push_back(at_boundary(w, plan, last.graph, last.graph.output));
  return out;
}

std::int64_t reference_logits(const Workload& w, const LayerDefinition& last) {
  if (w.preference == nullptr || !w.preference->reference || last.role != LayerRole::head) return 0;
  for (const Tensor& t : last.graph.tensors)
    if (t.category == MemoryCategory::logits) return t.bytes;
  return 0;
}

std::int64_t mask_bytes(const Workload& w, const LayerDefinition& layer) {
  if (!w.framework.attention.registers_causal_masks || layer.role != LayerRole::block) return 0;
  const std::int64_t rows = w.model.causal_mask_rows;
  return rows * rows * layer.blocks;
}

}  // namespace shardwise
