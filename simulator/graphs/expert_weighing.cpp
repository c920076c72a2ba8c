#include "simulator/graphs/expert_weighing.hpp"

namespace shardwise {

// t + b p for the tokens t of every expert, its bias b and their probabilities p, then all in one
// tensor again (megatron/core/transformer/moe/experts.py, TEGroupedMLP._apply_bias): operators of
// PyTorch's own, counted with their bytes per element by calibrate/count_expert_operators.py. With
// the fp32 probabilities that DeepEP and HybridEP ask for, everything between is fp32. Backward
// adds each gradient of both biases to the one that is kept. A graph of the whole step cannot hold
// it: there the products add the bias themselves.
TensorIndex add_weighted_bias(GraphBuilder& b, TensorIndex x, std::int64_t elements, int experts) {
  const Workload& w = b.workload();
  if (!w.model.biases.experts || !w.framework.weighs_expert_bias || w.step_is_graph) return x;
  const bool wide = w.framework.dispatches_once;
  const auto n = static_cast<double>(elements);
  const auto plain = [&](double each, int launches) {
    return MemoryWork{ceil_bytes(each * n), launches, MemoryAccess::streaming, true};
  };
  Operator op;
  op.name = "expert_bias";
  op.inputs = {x};
  op.outputs = {b.tensor("expert_bias", elements)};
  op.forward = {plain(wide ? 28 : 12, 2 * experts + (wide ? 2 : 1))};
  op.backward = {plain(wide ? 40 : 16, (wide ? 6 : 4) * experts + (wide ? 3 : 2))};
  if (b.trains_base()) op.backward_weight = {plain(0, 2 * experts)};
  op.forward_temporary = Bytes((wide ? 8 : 2) * elements);
  op.backward_temporary = op.forward_temporary;
  const TensorIndex out = op.outputs.front();
  b.add(std::move(op));
  return out;
}

// gpt-oss bounds gate and up before its activation: operators of PyTorch's own before the fused one
// (chunk, two clamps and a cat in weighted_bias_quick_geglu_impl of Megatron-LM @d98e8a64dd
// megatron/core/fusions/fused_bias_geglu.py), counted with their bytes per element of the result by
// calibrate/count_expert_operators.py. It also makes a tensor of one number for the GPU, which is a
// copy that blocks (PyTorch torch/csrc/utils/tensor_new.cpp, internal_new_from_data, and
// aten/src/ATen/native/cuda/Copy.cu). No other model has biases in its experts. The grouped MLP in
// one kernel, that a step in one graph has, bounds them itself (Transformer Engine's
// ScaledClampedQGeGLU).
TensorIndex clamp_activation(GraphBuilder& b, TensorIndex up, std::int64_t elements) {
  const Workload& w = b.workload();
  if (!w.model.biases.experts || !w.framework.weighs_expert_bias || w.step_is_graph) return up;
  const auto n = static_cast<double>(elements);
  const TensorIndex out = b.tensor("expert_clamp", 2 * elements);
  Operator op;
  op.name = "expert_clamp";
  op.inputs = {up};
  op.outputs = {out};
  op.saves = {up};
  op.forward = {MemoryWork{ceil_bytes(16 * n), 3, MemoryAccess::streaming, true}, ReadBack{}};
  op.backward = {MemoryWork{ceil_bytes(30 * n), 9, MemoryAccess::streaming, true}};
  b.add(std::move(op));
  return out;
}

bool adds_bias_alone(const GraphBuilder& b) {
  const Workload& w = b.workload();
  return w.model.biases.experts && !w.framework.weighs_expert_bias && b.eager();
}

// A bias for each row, then the sum (transformers 5.23.0 src/transformers/integrations/moe.py,
// grouped_mm_experts_forward; pytorch/torchtitan @b5bcd76c66 torchtitan/models/gpt_oss/moe.py):
// 2 + 6 bytes of a 16-bit element, and 2 to add up its gradient. Experts in turn read one bias.
TensorIndex add_bias_alone(GraphBuilder& b, TensorIndex x, std::int64_t elements, int calls) {
  const bool at_once = calls == 1;
  const auto n = static_cast<double>(elements * b.element());
  const TensorIndex out =
      b.pointwise("expert_bias", {x}, {}, elements, (at_once ? 4 : 2) * n, 0, 2 * calls);
  Operator& op = b.last();
  op.backward.clear();
  if (b.trains_base()) op.backward = {traffic(n, calls, MemoryAccess::reduction)};
  if (at_once) op.forward_temporary = Bytes(elements * b.element());
  return out;
}

// transformers 5.23.0 models/gpt_oss/modeling_gpt_oss.py, GptOssExperts._apply_gate: every second
// value is clamped from above and, the others, from both sides; times a constant, sigmoid, mul; add
// one, mul. Of an element of the result, of 16 bits, 32 bytes by seven operators; backward 90 by
// eighteen, as counted under a dispatch mode: comparisons and where, two zeros that the slices'
// gradients are copied into, and their sum. torchtitan's take 30 and 104.
TensorIndex clamped_swish(GraphBuilder& b, TensorIndex up, std::int64_t elements, int calls) {
  struct Passes {
    double forward, backward;  // tensors that are read or written
    int operators, gradients;
  };
  const auto n = static_cast<double>(elements * b.element());
  const auto made = [&](std::vector<TensorIndex> from, bool kept, const Passes& p) {
    const std::vector<TensorIndex> saves = kept ? from : std::vector<TensorIndex>{};
    const TensorIndex out = b.pointwise("expert_activation", std::move(from), saves, elements,
                                        p.forward * n, p.backward * n, p.operators * calls);
    std::get<MemoryWork>(b.last().backward.front()).launches = p.gradients * calls;
    return out;
  };
  const TensorIndex gate = made({up}, true, {2, 4 + 4, 1, 4});
  const TensorIndex linear = made({up}, true, {2, 7 + 4, 1, 6});  // the sum of both is the graph's
  const TensorIndex sigmoid = made({gate}, false, {4, 5, 2, 2});
  const TensorIndex swish = made({gate, sigmoid}, true, {3, 6, 1, 2});  // and so here
  const TensorIndex more = made({linear}, false, {2, 0, 1, 0});
  return made({more, swish}, true, {3, 6, 1, 2});
}

// A row of every expert of a token goes to fp32, is multiplied by its score and goes back, each a
// kernel (pytorch/torchtitan @25c9530c1 torchtitan/models/common/token_dispatcher.py, combine;
// @v0.2.0 torchtitan/models/moe/moe.py, before the experts or after them): 6 + 8 + 6 bytes of an
// element. Backward: the casts' 6 + 6, the row's gradient 8, the score's product 12 and its sum 4.
// The multiplication keeps the fp32 rows. A compiler makes one kernel of them, 4 and 6 bytes, if it
// is let: until 2026 the dispatch is left out (v0.2.2 models/llama4/infra/parallelize.py:626).
TensorIndex weigh_rows(GraphBuilder& b, TensorIndex rows, TensorIndex scores,
                       std::int64_t elements) {
  const auto n = static_cast<double>(elements);
  const Framework& f = b.workload().framework;
  if (f.compiles_dispatch && f.kernels == KernelStyle::compiled)
    return b.pointwise("weighted_rows", {rows, scores}, {rows, scores}, elements, 4 * n, 6 * n, 1);
  const Bytes wide(4 * elements);
  Operator op;
  op.name = "weighted_rows";
  op.inputs = {rows, scores};
  op.outputs = {b.tensor_bytes("wide_rows", wide.value, MemoryCategory::activations, 0),
                b.tensor("weighted_rows", elements)};
  op.saves = {op.outputs.front(), scores};
  op.forward = {MemoryWork{ceil_bytes(20 * n), 3, MemoryAccess::streaming, true}};
  op.backward = {MemoryWork{ceil_bytes(36 * n), 5, MemoryAccess::streaming, true}};
  op.forward_temporary = wide;
  op.backward_temporary = Bytes(2 * wide.value);
  op.backward_temporaries = 2;
  const TensorIndex out = op.outputs.back();
  b.add(std::move(op));
  return out;
}

// Backward makes the gradient of the rows and, for that of the scores, its product with the rows,
// which is then summed: 2 + 3 + 1 values.
TensorIndex weigh_in_order_of_experts(GraphBuilder& b, TensorIndex rows, TensorIndex scores,
                                      std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  Operator op;
  op.name = "weighted_rows";
  op.inputs = {rows, scores};
  op.outputs = {b.tensor("weighted_rows", elements)};
  op.saves = {rows, scores};
  op.forward = {MemoryWork{ceil_bytes(2 * n), 1, MemoryAccess::streaming, true}};
  op.backward = {MemoryWork{ceil_bytes(6 * n), 3, MemoryAccess::streaming, true}};
  op.backward_temporary = Bytes(2 * b.bytes_of(rows));
  op.backward_temporaries = 2;
  const TensorIndex out = op.outputs.front();
  b.add(std::move(op));
  return out;
}

}  // namespace shardwise
