// What quantises the operands of an 8-bit or 4-bit product.
//
// One scale for a tensor or a block: input and output gradient are read once in 16 bits and written
// twice in 8, by rows and by columns. Products that read one tensor (q, k, v; gate and up) share
// its cast: Transformer Engine fuses them into one linear, torch.compile into one expression.
// A scale of the tensor's own largest value reads it once more for that, unless the norm that made
// it has found it (Transformer Engine v2.11 pytorch/csrc/quantizer.cpp,
// Float8CurrentScalingQuantizer; extensions/normalization.cpp, FUSED_NORM_AMAX_FP8).
//
// One scale for each row (torchao "rowwise"), in bytes per element
// (pytorch/ao @36027d82d torchao/testing/training/roofline_utils.py,
// get_tensor_memory_traffic_ovhd_s): 3 for the rows of an operand, 5 for its columns, whose 16-bit
// transpose is written first; a weight is quantised anew in every pass, 3 and 7. The two products
// of backward run without scales, and a kernel of its own multiplies what they give by both
// (torchao/float8/float8_ops.py, addmm_float8_unwrapped): 4.
#include <algorithm>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {
namespace {

constexpr double tensor_cast = 4;
constexpr double largest_value = 2;
constexpr double row_cast = 3;
constexpr double column_cast = 5;
constexpr double weight_column_cast = 7;
constexpr double rescaling = 4;

}  // namespace

bool GraphBuilder::scales_rows() const {
  return workload_.compute == DType::fp8 && workload_.framework.scales_rows;
}

bool GraphBuilder::gathers_narrow() const {
  return workload_.compute == DType::fp8 && workload_.framework.gathers_sequence_quantized &&
         !scales_rows();
}

bool GraphBuilder::comes_from_norm(TensorIndex x) const {
  for (const auto& [gathered, source] : gathered_from_)
    if (gathered == x) return comes_from_norm(source);
  return std::any_of(graph_.operators.begin(), graph_.operators.end(), [x](const Operator& op) {
    return op.name.ends_with("norm") && op.outputs.back() == x;
  });
}

void GraphBuilder::cast_operands(Operator& op, TensorIndex x, const ProductShape& p) {
  const auto cast = [](double bytes, std::int64_t elements, int launches) {
    return MemoryWork{Bytes(static_cast<std::int64_t>(bytes * static_cast<double>(elements))),
                      launches, MemoryAccess::streaming};
  };
  const std::int64_t inputs = p.rows * p.in, outputs = p.rows * p.out, weights = p.in * p.out;
  const bool first = quantized_input_ != x;
  quantized_input_ = x;
  if (!scales_rows()) {
    // What was gathered in 8 bits had been cast before, a share of it by each rank.
    const bool shared = gathers_narrow() && was_gathered(x);
    const bool scans = workload_.compute == DType::fp8 && workload_.framework.current_scaling;
    const bool scans_input = scans && !comes_from_norm(x);
    const double each = tensor_cast + (scans_input ? largest_value : 0);
    if (first)
      op.forward.push_back(cast(each, shared ? inputs / tensor_ : inputs, scans_input ? 2 : 1));
    op.backward.push_back(cast(tensor_cast + (scans ? largest_value : 0), outputs, scans ? 2 : 1));
    return;
  }
  if (first) op.forward.push_back(cast(row_cast, inputs, 1));
  op.forward.push_back(cast(row_cast, weights, 1));
  op.backward.push_back(cast(row_cast, outputs, 1));
  op.backward.push_back(cast(weight_column_cast, weights, 2));
  op.backward.push_back(cast(rescaling, inputs, 1));
  if (!trains_base_) return;
  if (first) op.backward_weight.push_back(cast(column_cast, inputs, 1));
  op.backward_weight.push_back(cast(column_cast, outputs, 1));
  op.backward_weight.push_back(cast(rescaling, weights, 1));
}

}  // namespace shardwise
