#include "simulator/graphs/expert_maps.hpp"

#include <algorithm>
#include <bit>

namespace shardwise {
namespace {

// Transformer Engine @d0067d0da common/triton/permutation.py. A program of 128 threads for each
// token sorts the row numbers of all experts in n (n + 1) / 2 bitonic stages, n the binary
// logarithm of their number (_row_id_map_pass_3_kernel). A program for each row adds up the sizes
// of all chunks before it (_make_chunk_sort_map_kernel).
constexpr unsigned threads = 128;

MemoryWork computed_map(std::int64_t programs, const LaneSteps& lanes) {
  MemoryWork work{Bytes(4 * programs), 0, MemoryAccess::streaming};
  work.lanes = lanes;
  return work;
}

}  // namespace

bool makes_row_maps(const GraphBuilder& b) {
  const Workload& w = b.workload();
  return w.framework.experts.moves_rows_by_maps && !w.framework.experts.dispatches_once;
}

MemoryWork map_of_tokens(const GraphBuilder& b) {
  const auto experts = static_cast<unsigned>(b.workload().model.moe->experts);
  const unsigned numbers = std::bit_ceil(experts);
  const int n = std::countr_zero(numbers);
  const std::int64_t tokens = b.sequence_tokens(), stages = n * (n + 1) / 2;
  return computed_map(tokens, {LaneLoop::row_sort, tokens * std::max(numbers, threads) * stages});
}

MemoryWork map_of_chunks(const GraphBuilder& b, const ExpertShape& s) {
  const std::int64_t chunks = b.workload().model.moe->experts * b.plan().expert_tensor;
  return computed_map(s.routed, {LaneLoop::chunk_sum, s.routed * chunks, s.routed});
}

}  // namespace shardwise
