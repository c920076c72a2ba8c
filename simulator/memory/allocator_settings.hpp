// AllocatorSettings: the fields of PYTORCH_ALLOC_CONF that shape memory, and the two size rules
// that turn a request into a block and a block into a device allocation.
//
//   block(request)  = request rounded up to 512 B, at least 512 B             [round_size]
//                     where roundup_power2_divisions N >= 2 holds for this size and
//                     request > 512 B * N: up to the next of the N equal steps
//                     between two powers of two            [roundup_power2_next_division]
//   segment(block)  = 2 MiB                          block <= 1 MiB: the small pool
//                     20 MiB                         1 MiB < block < 10 MiB
//                     block rounded up to 2 MiB      block >= 10 MiB   [get_allocation_size]
//
// Source: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp @001074d250, symbols in brackets;
// limits and defaults of the fields from c10/core/AllocatorConfig.h @007b9bc026 and
// .cpp @065861fba7.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "catalog/result.hpp"
#include "catalog/units.hpp"

namespace shardwise {

inline constexpr Bytes min_block_size{512};             // kMinBlockSize
inline constexpr Bytes largest_small_block{1 << 20};    // kSmallSize
inline constexpr Bytes small_segment_size{2 << 20};     // kSmallBuffer
inline constexpr Bytes large_segment_size{20 << 20};    // kLargeBuffer
inline constexpr Bytes shared_segment_limit{10 << 20};  // kMinLargeAlloc: below it, kLargeBuffer
inline constexpr Bytes large_segment_step{2 << 20};     // kRoundLarge

// Divisions per size interval: [i] holds for 2^(20+i) B <= size < 2^(21+i) B, the first also for
// everything smaller and the last for everything larger (1 MiB ... 32 GiB). 0 and 1 mean off:
// PyTorch ignores 1 (pytorch/pytorch#161139).
using PowerOfTwoDivisions = std::array<std::uint32_t, 16>;

struct AllocatorSettings {
  bool expandable_segments = false;
  std::optional<Bytes> max_split_size;  // none: every block may be split
  Bytes max_non_split_rounding = large_segment_size;
  PowerOfTwoDivisions roundup_power2_divisions{};
  std::optional<double> garbage_collection_threshold;  // of process_limit, in (0, 1)
  // set_per_process_memory_fraction times the GPU's total memory. Counts segments only, neither
  // the CUDA context nor NCCL (pytorch/pytorch#107667). Garbage collection needs it.
  std::optional<Bytes> process_limit;

  friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

// The same number of divisions for every size, as `roundup_power2_divisions:N` sets it.
PowerOfTwoDivisions uniform_divisions(std::uint32_t divisions);

// All that PyTorch would refuse in these settings; `where` names their origin in the answer.
Problems check(const AllocatorSettings& settings, const std::string& where);

constexpr Bytes round_up(Bytes size, Bytes step) {
  return Bytes((size.value + step.value - 1) / step.value * step.value);
}
constexpr Bytes round_down(Bytes size, Bytes step) {
  return Bytes(size.value / step.value * step.value);
}

// Bytes that a request of more than nothing takes from its pool.
Bytes block_size(Bytes request, const PowerOfTwoDivisions& divisions);
// The same where no divisions are set.
constexpr Bytes plain_block_size(Bytes request) {
  return request < min_block_size ? min_block_size : round_up(request, min_block_size);
}

constexpr bool is_small(Bytes block) { return block <= largest_small_block; }

// Bytes that are asked of CUDA when no cached block can take this one.
constexpr Bytes segment_size(Bytes block) {
  if (is_small(block)) return small_segment_size;
  if (block < shared_segment_limit) return large_segment_size;
  return round_up(block, large_segment_step);
}

}  // namespace shardwise
