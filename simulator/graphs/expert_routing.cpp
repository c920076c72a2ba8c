#include "simulator/graphs/expert_routing.hpp"

#include <cstdint>
#include <vector>

#include "simulator/graphs/expert_rows.hpp"

namespace shardwise {
namespace {

// HybridEP: every rank gathers the routing maps of all, a byte for each token and expert, and a
// kernel reads what concerns its node twice and writes where each token of a rank goes: for every
// local expert an index of 4 bytes and a byte, for every rank an index. Another pads the counts
// (deepseek-ai/DeepEP @94a9f8f csrc/hybrid_ep/executor/executor.cu, allgather_routing_map and
// metadata_preprocess_core; backend/hybrid_ep_backend.cuh, scan). Backward uses them again.
void gather_maps(const GraphBuilder& b, std::int64_t rows, std::vector<Kernel>& forward) {
  const std::int64_t ranks = b.plan().expert, experts = b.workload().model.moe->experts;
  const std::int64_t map = rows * ranks * experts;
  const MemoryWork scan{Bytes(2 * map + 5 * map / ranks + 4 * rows * ranks), 2,
                        MemoryAccess::streaming};
  const CommWork gather{Collective::all_gather, Bytes(map), CommAxis::expert, false};
  forward.insert(forward.begin(), scan);
  forward.insert(forward.begin(), gather);
}

// What Megatron's router keeps per token and expert: the auxiliary loss's own fp32 scores (4 B;
// megatron/core/transformer/moe/moe_utils.py, compute_routing_scores_for_aux_loss), the map as
// booleans (1 B), and as the two int32 rows by which Transformer Engine permutes tokens and sends
// them back (8 B; common/triton/permutation.py). Score functions over all experts keep more.
void keep_routing(GraphBuilder& b, TensorIndex scores, std::int64_t rows, int experts) {
  if (b.workload().framework.layers.kernels != KernelStyle::fused) return;
  const std::int64_t kept = 13 * rows * experts;
  Operator op;
  op.name = "routing";
  op.inputs = {scores};
  op.outputs = {b.tensor_bytes("routing", kept, MemoryCategory::activations, 0)};
  op.saves = op.outputs;
  op.forward = {MemoryWork{Bytes(2 * kept), 1, MemoryAccess::streaming}};
  b.add(std::move(op));
}

// What a router of fp32 reads (pytorch/torchtitan ab5ed59f8 torchtitan/models/moe/moe.py, 4 March
// 2026: torch.autocast to fp32 around the gate; InternLM/xtuner xtuner/v1/module/decoder_layer/
// moe_decoder_layer.py, MoEGate). Its gradient comes back in 16 bits: 6 bytes of an element each
// way, but 4 where a compiler makes the copy beside the norm and adds up the gradient as it reads.
TensorIndex widen_router_input(GraphBuilder& b, TensorIndex x, std::int64_t elements) {
  const bool compiled = b.workload().framework.layers.kernels == KernelStyle::compiled;
  const Bytes wide(4 * elements);
  Operator op;
  op.name = "router_input";
  op.inputs = {x};
  op.outputs = {
      b.tensor_bytes("router_input", wide.value, MemoryCategory::temporaries, wide.value)};
  op.forward = {traffic((compiled ? 4.0 : 6.0) * static_cast<double>(elements), compiled ? 0 : 1)};
  op.backward = op.forward;
  const TensorIndex out = op.outputs.front();
  b.add(std::move(op));
  return out;
}

}  // namespace

TensorIndex route_tokens(GraphBuilder& b, TensorIndex residual, TensorIndex normed) {
  const Transformer& m = b.workload().model;
  const std::int64_t rows = b.sequence_tokens();
  const bool scaled = m.moe->scaled_router;
  if (scaled) b.count_other(m.moe->experts);
  const TensorIndex x = scaled ? b.norm("router_norm", residual, rows, m.hidden) : normed;
  const bool wide = b.workload().framework.experts.routes_in_fp32 && b.element() == 2;
  LinearSpec router{"router", m.hidden, m.moe->experts, Cut::none, m.biases.router, false, false};
  router.low_precision = false;
  router.wide = wide;
  const TensorIndex scores =
      b.linear(router, wide ? widen_router_input(b, x, rows * m.hidden) : x, rows);
  keep_routing(b, scores, rows, m.moe->experts);
  return scores;
}

// What decides which tokens go where: operators of PyTorch's own on small tensors, counted without
// views by calibrate/count_expert_operators.py with Megatron-LM @d98e8a64dd: the choice 8 and the
// balance loss 11 forward, 10 backward, and the tokens of every expert 12 where an all-to-all must
// know them (megatron/core/transformer/moe/token_dispatcher.py, preprocess). The CPU launches every
// expert's product, of as many rows as it has tokens, so that it reads these numbers back before it
// goes on (cuda_sync_point of the same file; HybridEPTokenDispatcher too, where nothing bounds the
// number of tokens; megatron/core/transformer/moe/experts.py, TEGroupedMLP.forward: tolist). Of
// PyTorch's grouped product only an all-to-all makes it read them.
void add_routing(GraphBuilder& b) {
  const std::int64_t rows = b.sequence_tokens();
  const Workload& w = b.workload();
  const bool counts =
      b.plan().expert > 1 && !w.framework.experts.dispatches_once && !w.pads_experts;
  const double scores = 4.0 * static_cast<double>(rows * w.model.moe->experts);
  const auto kernels = [&](int launches, bool routing) {
    return MemoryWork{ceil_bytes(2 * scores * launches), launches, MemoryAccess::streaming, true,
                      routing};
  };
  std::vector<Kernel>& forward = b.last().forward;
  const bool told = w.pads_experts || (multiplies_by_torch(b) && b.plan().expert == 1);
  if (!told) forward.insert(forward.begin(), ReadBack{});
  if (b.plan().expert > 1 && w.framework.experts.dispatches_once &&
      w.framework.experts.dispatches_by_map)
    gather_maps(b, rows, forward);
  // Each rank's count of every expert, in 8 bytes, is gathered by all (preprocess: tp_ep_group).
  const CommWork gather{Collective::all_gather,
                        Bytes(std::int64_t{8} * b.plan().expert * w.model.moe->experts),
                        CommAxis::expert, false};
  if (counts) forward.insert(forward.begin(), gather);
  if (counts) forward.insert(forward.begin(), kernels(12, false));
  forward.insert(forward.begin(), kernels(19, true));
  b.last().backward.push_back(kernels(10, true));
}

}  // namespace shardwise
