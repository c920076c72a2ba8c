// What makes 16 bits of quantised weights before a product reads them.
#include <vector>

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

// Bytes for a constant that is quantised itself: a kernel reads its code and a share of the 4 for
// every 256 of them, and writes 4; another adds their mean in place.
constexpr double nested_traffic = 1 + 4.0 / 256 + 4 + 4 + 4;
constexpr double weights_per_constant = 64;

// What makes `elements` of `width` bytes, each launched so many times. Of 4 bits that is a kernel
// which reads codes and fp32 constants, and two before it where those have to be made first
// (bitsandbytes/functional.py @01327aa011, dequantize_4bit).
std::vector<MemoryWork> unpacking_kernels(const Workload& w, std::int64_t elements, int width,
                                          int times) {
  const Quantization base = w.adapter.base;
  const bool nested = base == Quantization::nf4_double;
  const bool four_bits = nested || base == Quantization::nf4;
  const double stored = row(nested ? Quantization::nf4 : base).bytes_per_weight;
  const double n = as_double(elements);
  std::vector<MemoryWork> kernels;
  if (nested) kernels.push_back(traffic(nested_traffic / weights_per_constant * n, 2 * times));
  kernels.push_back(traffic((stored + width) * n, (four_bits ? 1 : 2) * times));
  if (four_bits) kernels.back().lanes = {w.framework.quantized.four_bit_unpacking, elements};
  return kernels;
}

void unpack_first(Operator& op, const std::vector<MemoryWork>& kernels) {
  op.forward.insert(op.forward.begin(), kernels.begin(), kernels.end());
  op.backward.insert(op.backward.begin(), kernels.begin(), kernels.end());
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
  unpack_first(op, unpacking_kernels(workload_, elements, width, 1));
  const Bytes copies(width * elements * workload_.framework.quantized.dequantized_copies);
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
  const std::int64_t parts =
      workload_.framework.quantized.dequantizes_experts_at_once ? 1 : experts;
  unpack_first(op, unpacking_kernels(workload_, elements, 2, static_cast<int>(parts)));
  const Bytes copy(2 * elements / parts * workload_.framework.quantized.dequantized_copies);
  op.forward_temporary += copy;
  op.backward_temporary += copy;
  op.temporary_category = MemoryCategory::quantization;
}

}  // namespace shardwise
