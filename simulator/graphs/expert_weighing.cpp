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
