#include "simulator/graphs/expert_weighing.hpp"

#include <vector>

namespace shardwise {
namespace {

// Operators of PyTorch's own: those that take `elements` one by one, as an operand is broadcast,
// strided or widened, and the others.
std::vector<Kernel> own_operators(double singly, int launches, double elements, double others,
                                  int other_launches) {
  MemoryWork alone = one_by_one(singly, launches, elements), rest = traffic(others, other_launches);
  alone.plain = rest.plain = true;
  return {alone, rest};
}

}  // namespace

// t + b p for the tokens t of every expert, its bias b and their probabilities p, then all in one
// tensor again (megatron/core/transformer/moe/experts.py, TEGroupedMLP._apply_bias): operators of
// PyTorch's own, counted with their bytes per element by calibrate/count_expert_operators.py. With
// the fp32 probabilities that DeepEP and HybridEP ask for, everything between is fp32. Backward
// adds each gradient of both biases to the one that is kept. A graph of the whole step cannot hold
// it: there the products add the bias themselves. b p broadcasts both, its sum with t and the
// gradient's copy widen, and so do backward's products with b and p.
TensorIndex add_weighted_bias(GraphBuilder& b, TensorIndex x, std::int64_t elements, int experts) {
  const Workload& w = b.workload();
  if (!w.model.biases.experts || !w.framework.experts.weighs_bias || w.step_is_graph) return x;
  const bool wide = w.framework.experts.dispatches_once;
  const auto n = static_cast<double>(elements);
  Operator op;
  op.name = "expert_bias";
  op.inputs = {x};
  op.outputs = {b.tensor("expert_bias", elements)};
  op.forward = wide ? own_operators(14 * n, 2 * experts, 2 * n, 14 * n, 2)
                    : own_operators(2 * n, experts, n, 10 * n, experts + 1);
  op.backward = wide ? own_operators(22 * n, 2 * experts + 1, 3 * n, 18 * n, 4 * experts + 2)
                     : own_operators(8 * n, 2 * experts, 2 * n, 8 * n, 2 * experts + 2);
  if (b.trains_base())
    op.backward_weight = {MemoryWork{Bytes(0), 2 * experts, MemoryAccess::streaming, true}};
  op.forward_temporary = Bytes((wide ? 8 : 2) * elements);
  op.backward_temporary = op.forward_temporary;
  const TensorIndex out = op.outputs.front();
  b.add(std::move(op));
  return out;
}

// gpt-oss bounds gate and up before its activation: operators of PyTorch's own before the fused one
// (chunk, two clamps and a cat in weighted_bias_quick_geglu_impl of Megatron-LM @d98e8a64dd
// megatron/core/fusions/fused_bias_geglu.py), counted with their bytes per element of the result by
// calibrate/count_expert_operators.py; both halves of the tensor and of its gradient are strided,
// which clamps, comparisons and selections take one by one. It also makes a tensor of one number
// for the GPU, which is a copy that blocks (PyTorch torch/csrc/utils/tensor_new.cpp,
// internal_new_from_data, and aten/src/ATen/native/cuda/Copy.cu). No other model has biases in its
// experts. The grouped MLP in one kernel, that a step in one graph has, bounds them itself
// (Transformer Engine's ScaledClampedQGeGLU).
TensorIndex clamp_activation(GraphBuilder& b, TensorIndex up, std::int64_t elements) {
  const Workload& w = b.workload();
  if (!w.model.biases.experts || !w.framework.experts.weighs_bias || w.step_is_graph) return up;
  const auto n = static_cast<double>(elements);
  const TensorIndex out = b.tensor("expert_clamp", 2 * elements);
  Operator op;
  op.name = "expert_clamp";
  op.inputs = {up};
  op.outputs = {out};
  op.saves = {up};
  op.forward = own_operators(8 * n, 2, 2 * n, 8 * n, 1);
  op.forward.emplace_back(ReadBack{});
  op.backward = own_operators(19 * n, 5, 5 * n, 11 * n, 4);
  b.add(std::move(op));
  return out;
}

bool adds_bias_alone(const GraphBuilder& b) {
  const Workload& w = b.workload();
  return w.model.biases.experts && !w.framework.experts.weighs_bias && b.eager();
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
// gradients are copied into, and their sum. torchtitan's take 30 and 104. What is clamped and
// compared is strided, and taken one by one.
TensorIndex clamped_swish(GraphBuilder& b, TensorIndex up, std::int64_t elements, int calls) {
  struct Passes {
    double forward, backward;  // tensors that are read or written
    int operators, gradients;
    std::int64_t singly = 0, back_singly = 0;  // elements, of each of the result
  };
  const auto n = static_cast<double>(elements * b.element());
  const auto made = [&](std::vector<TensorIndex> from, bool kept, const Passes& p) {
    const std::vector<TensorIndex> saves = kept ? from : std::vector<TensorIndex>{};
    const TensorIndex out = b.pointwise("expert_activation", std::move(from), saves, elements,
                                        p.forward * n, p.backward * n, p.operators * calls);
    auto& back = std::get<MemoryWork>(b.last().backward.front());
    back.launches = p.gradients * calls;
    back.singly = p.back_singly * elements;
    std::get<MemoryWork>(b.last().forward.front()).singly = p.singly * elements;
    return out;
  };
  const TensorIndex gate = made({up}, true, {2, 4 + 4, 1, 4, 1, 3});
  const TensorIndex linear =
      made({up}, true, {2, 7 + 4, 1, 6, 1, 4});  // the sum of both is the graph's
  const TensorIndex sigmoid = made({gate}, false, {4, 5, 2, 2});
  const TensorIndex swish = made({gate, sigmoid}, true, {3, 6, 1, 2});  // and so here
  const TensorIndex more = made({linear}, false, {2, 0, 1, 0});
  return made({more, swish}, true, {3, 6, 1, 2});
}

// A row of every expert of a token goes to fp32, is multiplied by its score and goes back, each a
// kernel (pytorch/torchtitan @25c9530c1 torchtitan/models/common/token_dispatcher.py, combine;
// @v0.2.0 torchtitan/models/moe/moe.py, before the experts or after them): 6 + 8 + 6 bytes of an
// element. Backward: the casts' 6 + 6, the row's gradient 8, the score's product 12 and its sum 4.
// The casts to fp32 and the products with a row's score take elements one by one. The
// multiplication keeps the fp32 rows. A compiler makes one kernel of them, 4 and 6 bytes, if it is
// let: until 2026 the dispatch is left out (v0.2.2 models/llama4/infra/parallelize.py:626).
TensorIndex weigh_rows(GraphBuilder& b, TensorIndex rows, TensorIndex scores,
                       std::int64_t elements) {
  const auto n = static_cast<double>(elements);
  const Framework& f = b.workload().framework;
  if (f.experts.compiles_dispatch && f.layers.kernels == KernelStyle::compiled)
    return b.pointwise("weighted_rows", {rows, scores}, {rows, scores}, elements, 4 * n, 6 * n, 1);
  const Bytes wide(4 * elements);
  Operator op;
  op.name = "weighted_rows";
  op.inputs = {rows, scores};
  op.outputs = {b.tensor_bytes("wide_rows", wide.value, MemoryCategory::activations, 0),
                b.tensor("weighted_rows", elements)};
  op.saves = {op.outputs.front(), scores};
  op.forward = own_operators(14 * n, 2, 2 * n, 6 * n, 1);
  op.backward = own_operators(14 * n, 2, 2 * n, 22 * n, 3);
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
