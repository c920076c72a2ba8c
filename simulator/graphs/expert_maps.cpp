#include "simulator/graphs/expert_maps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardwise {
namespace {

// Transformer Engine @d0067d0da common/triton/permutation.py. A program of 128 threads for each
// token sorts the row numbers of all experts in n (n + 1) / 2 bitonic stages, n the binary
// logarithm of their number (_row_id_map_pass_3_kernel): 216.4 us for 4,096 tokens of 512 experts
// on a GB200 are 92 cycles of a lane for each number and stage, at 40e12 cycles a second, half of
// its fp32 rate. A program for each row adds up the sizes of all chunks before it
// (_make_chunk_sort_map_kernel): 182.6 us for 90,112 rows and 512 chunks there, and 182.1 us for
// 131,072 and 256 on a B300, are 30,000 cycles and 99 for each chunk. The runs, in public repos:
// Nemotron 3 Ultra by TP 2 and EP 32, 166.2 ms in 768 and 280.4 ms in 1,536 calls under nsys
// ("Nemotron 3 Ultra - Deterministic vs Non-Deterministic Perf Analysis", 12 June 2026, 4.2);
// GLM-5.2 by CP 8 and EP 8, 0.102 s in 560 calls, taken for the mean rank's rows ("GLM-5.2 131K
// Flex dispatcher: all-to-all vs DeepEP (16 SMs)").
constexpr double sorting_cycles = 92, row_cycles = 30'000, chunk_cycles = 99;
constexpr unsigned threads = 128;

MemoryWork computed_map(std::int64_t programs, double cycles) {
  MemoryWork work{Bytes(4 * programs), 0, MemoryAccess::streaming};
  work.lane_cycles = std::llround(static_cast<double>(programs) * cycles);
  return work;
}

}  // namespace

bool makes_row_maps(const GraphBuilder& b) {
  const Workload& w = b.workload();
  return w.framework.moves_rows_by_maps && !w.framework.dispatches_once && !w.pads_experts;
}

MemoryWork map_of_tokens(const GraphBuilder& b) {
  const auto experts = static_cast<unsigned>(b.workload().model.moe->experts);
  const unsigned numbers = std::bit_ceil(experts);
  const int n = std::countr_zero(numbers);
  const double stages = n * (n + 1) / 2.0;
  return computed_map(b.sequence_tokens(), sorting_cycles * std::max(numbers, threads) * stages);
}

MemoryWork map_of_chunks(const GraphBuilder& b, const ExpertShape& s) {
  const double chunks = b.workload().model.moe->experts * b.plan().expert_tensor;
  return computed_map(s.routed, row_cycles + chunk_cycles * chunks);
}

}  // namespace shardwise
