// What makes 16 bits of quantised weights before a product reads them.
#include <algorithm>

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

// Bytes read to dequantise one 4-bit weight: codes, absmax and its nested form
// (bitsandbytes/functional.py:1052-1070). What is written is as wide as the product reads it.
constexpr double quantized_traffic = 0.6;

std::int64_t unpacking_cycles(const Workload& w) {
  const Quantization base = w.adapter.base;
  const bool four_bits = base == Quantization::nf4 || base == Quantization::nf4_double;
  return four_bits ? lane_cycles(w.framework.four_bit_unpacking) : 0;
}

// Bytes for GPTQ, which AutoGPTQ unpacks by PyTorch operators where more than 128 tokens are
// multiplied: shift into 32 bits (0.5 + 4), to 8 bits (4 + 1), mask (1 + 1), less the zero (1 + 1),
// times the scale (1 + 2) (auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py @179776bd1d:193-227).
constexpr double gptq_traffic = 16.5;
constexpr int gptq_launches = 5;
constexpr double gptq_singly = 4;  // all but the mask, whose operands are alike
// Bytes: 32 and 8 bits at the cast, less the 16 of the result.
constexpr std::int64_t gptq_temporary = 3;

}  // namespace

void GraphBuilder::add_dequantization(Operator& op, std::int64_t elements) const {
  const int width = follows_input_ ? 4 : 2;
  const double stored = std::max(quantized_traffic, row(workload_.adapter.base).bytes_per_weight);
  MemoryWork unpack = traffic((stored + width) * as_double(elements), 2);
  unpack.lane_cycles = unpacking_cycles(workload_) * elements;
  op.forward.insert(op.forward.begin(), unpack);
  op.backward.insert(op.backward.begin(), unpack);
  const Bytes copies(width * elements * workload_.framework.dequantized_copies);
  op.forward_temporary += copies;
  op.backward_temporary += copies;
  op.temporary_category = MemoryCategory::quantization;
}

// The matmul is PyTorch's own over the unpacked weight, so autograd keeps that until backward,
// which unpacks nothing.
void GraphBuilder::add_unpacking(Operator& op, std::int64_t elements) {
  op.forward.insert(op.forward.begin(),
                    one_by_one(gptq_traffic * as_double(elements), gptq_launches,
                               gptq_singly * as_double(elements)));
  op.forward_temporary += Bytes(gptq_temporary * elements);
  op.temporary_category = MemoryCategory::quantization;
  const TensorIndex unpacked =
      tensor_bytes("unpacked_weight", 2 * elements, MemoryCategory::quantization, 0);
  op.outputs.push_back(unpacked);
  op.saves.push_back(unpacked);
}

// bitsandbytes 0.49.1 nn/parametrize.py makes all of a tensor that is read, however many experts it
// holds; as linears of their own they are made one after the other.
void GraphBuilder::dequantize_experts(Operator& op, std::int64_t elements,
                                      std::int64_t experts) const {
  const Quantization base = workload_.adapter.base;
  if (!workload_.freezes_quantized() || !is_bitsandbytes(base) || leaves_experts_whole(workload_))
    return;
  const double stored = std::max(quantized_traffic, row(base).bytes_per_weight);
  MemoryWork unpack = traffic((stored + 2) * as_double(elements), 2 * static_cast<int>(experts));
  unpack.lane_cycles = unpacking_cycles(workload_) * elements;
  op.forward.insert(op.forward.begin(), unpack);
  op.backward.insert(op.backward.begin(), unpack);
  const bool whole = workload_.framework.dequantizes_experts_at_once;
  const Bytes copy(2 * elements / (whole ? 1 : experts) * workload_.framework.dequantized_copies);
  op.forward_temporary += copy;
  op.backward_temporary += copy;
  op.temporary_category = MemoryCategory::quantization;
}

}  // namespace shardwise
