#include "simulator/graphs/narrow_attention.hpp"

namespace shardwise {
namespace {

constexpr double both_ways = 2;            // bytes of an element, one by rows and one by columns
constexpr double scales = both_ways / 32;  // of blocks
// Read in 16 bits, written both ways with scales, which two kernels read and write again.
constexpr double cast_traffic = 2 + both_ways + scales + 2 * 2 * scales;
constexpr int scale_kernels = 2 * 2;  // rows and columns: by heads, as the tensor cores want them

TensorIndex narrow_copy(GraphBuilder& b, std::int64_t elements) {
  const double bytes = (both_ways + scales) * as_double(elements);
  return b.tensor_bytes("narrow_operand", static_cast<std::int64_t>(bytes),
                        MemoryCategory::activations, 0);
}

}  // namespace

bool attends_narrow(const GraphBuilder& b, const AttentionWork& work) {
  return b.workload().framework.narrow.attention && b.workload().compute == DType::mxfp8 &&
         work.kernel == AttentionKernel::cudnn && !work.fp32_operands;
}

void cast_attention(GraphBuilder& b, Operator& op, const AttentionElements& elements) {
  op.saves.clear();
  std::int64_t read = 0;
  for (const std::int64_t each : {elements.query, elements.key, elements.value}) {
    op.outputs.push_back(narrow_copy(b, each));
    op.saves.push_back(op.outputs.back());
    read += each;
  }
  op.forward.push_back(traffic(cast_traffic * as_double(read), 3 + scale_kernels));
  op.backward.push_back(traffic(cast_traffic * as_double(elements.result), 1 + scale_kernels));
}

}  // namespace shardwise
