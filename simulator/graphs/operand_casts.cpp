// What quantises the operands of an 8-bit or 4-bit product.
//
// One scale for a tensor or a block: input and output gradient are read once in 16 bits and written
// twice in 8, by rows and by columns; with one scale for the tensor once, on cards whose products
// read either order (Transformer Engine @d0067d0da pytorch/csrc/quantizer.cpp,
// Float8CurrentScalingQuantizer: with_transpose only without nvte_is_non_tn_fp8_gemm_supported).
// Products that read one tensor (q, k, v; gate and up) share
// its cast: Transformer Engine fuses them into one linear, torch.compile into one expression.
// NVFP4's columns are those of a random Hadamard transform, so that one kernel looks for the
// largest value of both and one writes both, 4 bits and a byte for sixteen of them each; until
// release 2.14 a kernel for each read the tensor once more (Transformer Engine
// pytorch/csrc/quantizer.cpp, NVFP4Quantizer::quantize_impl, v2.8 to v2.13 and v2.14). Gradients
// are rounded stochastically, for which a kernel takes a seed.
// A scale of the tensor's own largest value reads it once more for that, unless the norm that made
// it has found it (Transformer Engine v2.11 pytorch/csrc/quantizer.cpp,
// Float8CurrentScalingQuantizer; extensions/normalization.cpp, FUSED_NORM_AMAX_FP8); a compiler
// looks while it writes whatever is made element by element.
//
// torchao keeps no 8-bit weight (pytorch/ao @0598012907 torchao/testing/training/roofline_utils.py,
// get_tensor_memory_traffic_ovhd_s, "tensorwise" and "mxfp8"; torchao/float8/float8_linear.py saves
// input and weight in 16 bits): with one scale a weight is read for its largest value, 2 bytes per
// element, and cast by rows forward and by columns backward, 3 bytes each. Where shards are cast
// and 8 bits gathered, only what backward reads is made of them, by a transposing copy (torchao/
// float8/float8_ops.py, preprocess_addmm: the second operand lies by columns): 2. Scales of blocks
// need no scan, but input and weight are cast by rows forward and by columns backward, 3 and 3, and
// the output gradient both ways at once, by two kernels.
//
// One scale for each row (torchao "rowwise"), in bytes per element
// (pytorch/ao @36027d82d torchao/testing/training/roofline_utils.py,
// get_tensor_memory_traffic_ovhd_s): 3 for the rows of an operand, 5 for its columns, whose 16-bit
// transpose is written first; a weight is quantised anew in every pass, 3 and 7. The two products
// of backward run without scales, and a kernel of its own multiplies what they give by both
// (torchao/float8/float8_ops.py, addmm_float8_unwrapped): 4.
//
// NVFP4 by torchao: as by Transformer Engine a kernel looks for the largest values and one writes
// rows and columns, of input and weight forward, of the output gradient backward; forward's columns
// are kept (pytorch/ao @36027d82d torchao/prototype/moe_training/nvfp4_training/nvfp4_linear.py,
// nvfp4_mm_triton). They are Triton kernels that take three times as long as what they move: loops
// of the profile, one for each kernel, and others where tensors of all experts are cast at once.
#include <algorithm>

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

constexpr double tensor_cast = 4;
constexpr double tensor_cast_one_order = 3;
constexpr double one_way_cast = 3;
constexpr double largest_value = 2;
constexpr double narrow_transpose = 2;
constexpr double row_cast = 3;
constexpr double column_cast = 5;
constexpr double weight_column_cast = 7;
constexpr double rescaling = 4;
constexpr double four_bit_bytes = 0.5 + 1.0 / 16;  // and the scale of sixteen

MemoryWork computed_cast(double bytes, LaneLoop loop, double elements, int launches) {
  MemoryWork work = traffic(bytes * elements, launches);
  work.lanes = {loop, ceil_count(elements)};
  return work;
}

}  // namespace

NarrowCast cast_both_ways(const Workload& w, bool gradient) {
  const bool fused = w.framework.layers.kernels == KernelStyle::fused;
  if (fused && w.compute == DType::fp8 && !w.framework.narrow.weights_twice)
    return {tensor_cast_one_order, 1};
  if (w.compute != DType::nvfp4 || !fused) return {tensor_cast, 1};
  const int reads = w.framework.narrow.quantizes_apart ? 3 : 2;
  return {2 * reads + 2 * four_bit_bytes, reads + (gradient ? 1 : 0)};
}

bool casts_by_torchao(const Workload& w) {
  return w.compute == DType::nvfp4 && w.framework.narrow.weight_cast != WeightCast::once;
}

void cast_four_bits(std::vector<Kernel>& pass, FourBitOperand what, bool of_experts, double n) {
  using enum LaneLoop;
  const bool weight = what == FourBitOperand::weight, gradient = what == FourBitOperand::gradient;
  const LaneLoop search = weight ? none : of_experts ? nvfp4_experts_search : nvfp4_search;
  const LaneLoop stochastic = of_experts ? nvfp4_experts_stochastic : nvfp4_stochastic;
  const LaneLoop nearest = of_experts ? nvfp4_experts_nearest : nvfp4_nearest;
  const LaneLoop weights = of_experts ? nvfp4_experts_weight : nvfp4_weight;
  pass.emplace_back(computed_cast(largest_value, search, n, 1));
  // Stochastic rounding draws where the random numbers of rows and columns begin.
  const LaneLoop write = weight ? weights : gradient ? stochastic : nearest;
  pass.emplace_back(computed_cast(2 + 2 * four_bit_bytes, write, n, gradient ? 3 : 1));
}

bool GraphBuilder::scales_rows() const {
  return workload_.compute == DType::fp8 && workload_.framework.narrow.scales_rows;
}

bool GraphBuilder::gathers_narrow() const {
  return workload_.compute == DType::fp8 && workload_.framework.narrow.gathers_sequence &&
         !scales_rows();
}

bool GraphBuilder::comes_from_norm(TensorIndex x) const {
  for (const auto& [gathered, source] : gathered_from_)
    if (gathered == x) return comes_from_norm(source);
  return std::any_of(graph_.operators.begin(), graph_.operators.end(), [x](const Operator& op) {
    return op.name.ends_with("norm") && op.outputs.back() == x;
  });
}

bool GraphBuilder::made_by_element(TensorIndex x) const {
  for (const auto& [gathered, source] : gathered_from_)
    if (gathered == x) return made_by_element(source);
  return std::any_of(graph_.operators.begin(), graph_.operators.end(), [x](const Operator& op) {
    return op.kind == OperatorKind::pointwise &&
           std::find(op.outputs.begin(), op.outputs.end(), x) != op.outputs.end();
  });
}

// Of a product that has one scale for a tensor or a block.
void GraphBuilder::cast_weight(Operator& op, std::int64_t weights) {
  const WeightCast how = workload_.framework.narrow.weight_cast;
  if (how == WeightCast::once) return;
  const bool blocks = workload_.compute != DType::fp8;
  const double n = as_double(weights);
  if (how == WeightCast::gathered && !blocks) {
    op.backward.push_back(traffic(narrow_transpose * n, 1));
    return;
  }
  op.forward.push_back(traffic((one_way_cast + (blocks ? 0 : largest_value)) * n, blocks ? 1 : 2));
  op.backward.push_back(traffic(one_way_cast * n, 1));
}

TensorIndex GraphBuilder::narrow_input(std::int64_t elements, DType narrow) {
  const double bytes = bytes_per_element(narrow) * as_double(elements);
  return tensor_bytes("narrow_input", static_cast<std::int64_t>(bytes), MemoryCategory::activations,
                      0);
}

// The input for the weight gradient, one copy for products that read one tensor as they are one
// linear, and where forward makes the weight for both passes that too (Transformer Engine
// pytorch/module/linear.py without `is_first_microbatch`).
void GraphBuilder::save_narrow(Operator& op, TensorIndex source, std::int64_t weights) {
  if (narrow_copy_ == std::nullopt || narrow_copy_->first != source) {
    const TensorIndex copy = narrow_input(bytes_of(source) / element_, workload_.compute);
    narrow_copy_ = {source, copy};
    op.outputs.push_back(copy);
  }
  op.saves = {narrow_copy_->second};
  if (workload_.framework.narrow.weights != NarrowWeights::saved) return;
  const double bytes = narrow_weight_bytes(workload_) * as_double(weights);
  const TensorIndex weight = tensor_bytes("narrow_weight", static_cast<std::int64_t>(bytes),
                                          MemoryCategory::activations, 0);
  op.outputs.push_back(weight);
  op.saves.push_back(weight);
}

// As `cast_operands`, where nothing 8-bit outlives a pass and scales are of blocks.
void GraphBuilder::cast_blocks_apart(Operator& op, bool first, const ProductShape& p) {
  const double inputs = as_double(p.rows * p.in), outputs = as_double(p.rows * p.out);
  if (first) op.forward.push_back(traffic(one_way_cast * inputs, 1));
  op.backward.push_back(traffic(2 * one_way_cast * outputs, 2));
  if (first && trains_base_) op.backward_weight.push_back(traffic(one_way_cast * inputs, 1));
}

void GraphBuilder::cast_operands(Operator& op, TensorIndex x, const ProductShape& p) {
  const auto cast = [](double bytes, std::int64_t elements, int launches) {
    return MemoryWork{Bytes(static_cast<std::int64_t>(bytes * static_cast<double>(elements))),
                      launches, MemoryAccess::streaming};
  };
  const std::int64_t inputs = p.rows * p.in, outputs = p.rows * p.out, weights = p.in * p.out;
  const bool first = quantized_input_ != x;
  quantized_input_ = x;
  if (casts_by_torchao(workload_)) {
    if (first) cast_four_bits(op.forward, FourBitOperand::input, false, as_double(inputs));
    cast_four_bits(op.forward, FourBitOperand::weight, false, as_double(weights));
    cast_four_bits(op.backward, FourBitOperand::gradient, false, as_double(outputs));
    return;
  }
  if (!scales_rows()) {
    cast_weight(op, weights);
    if (workload_.framework.narrow.weight_cast != WeightCast::once &&
        workload_.compute != DType::fp8)
      return cast_blocks_apart(op, first, p);
    // What was gathered in 8 bits had been cast before, a share of it by each rank.
    const bool shared = gathers_narrow() && was_gathered(x);
    const bool scans =
        workload_.compute == DType::fp8 && workload_.framework.narrow.current_scaling;
    const bool compiled = workload_.framework.layers.kernels == KernelStyle::compiled;
    const bool scans_input = scans && !comes_from_norm(x) && !(compiled && made_by_element(x));
    const bool scans_output = scans && !compiled;
    const NarrowCast in = cast_both_ways(workload_, false), out = cast_both_ways(workload_, true);
    const double each = in.bytes_each + (scans_input ? largest_value : 0);
    if (first)
      op.forward.push_back(
          cast(each, shared ? inputs / tensor_ : inputs, in.kernels + (scans_input ? 1 : 0)));
    op.backward.push_back(cast(out.bytes_each + (scans_output ? largest_value : 0), outputs,
                               out.kernels + (scans_output ? 1 : 0)));
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
