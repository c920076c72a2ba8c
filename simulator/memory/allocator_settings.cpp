#include "simulator/memory/allocator_settings.hpp"

#include <algorithm>
#include <bit>

namespace shardwise {
namespace {

std::uint32_t divisions_for(std::uint64_t size, const PowerOfTwoDivisions& divisions) {
  const int interval = static_cast<int>(std::bit_width(size)) - 1 - 20;
  const int last = static_cast<int>(divisions.size()) - 1;
  return divisions[static_cast<std::size_t>(std::clamp(interval, 0, last))];
}

// `size` is more than `divisions` minimal blocks, so a step is at least one minimal block.
Bytes next_division(std::uint64_t size, std::uint32_t divisions) {
  const std::uint64_t power = std::bit_floor(size);
  if (size == power) return Bytes(static_cast<std::int64_t>(size));
  const std::uint64_t below = power / divisions - 1;  // a step is a power of two
  return Bytes(static_cast<std::int64_t>((size + below) & ~below));
}

std::string mib(Bytes size) { return std::to_string(size.value >> 20) + " MiB"; }

}  // namespace

PowerOfTwoDivisions uniform_divisions(std::uint32_t divisions) {
  PowerOfTwoDivisions all{};
  all.fill(divisions);
  return all;
}

Problems check(const AllocatorSettings& settings, const std::string& where) {
  Problems problems;
  const auto refuse = [&](const std::string& what) {
    problems.push_back({ProblemKind::request, where, what});
  };
  if (settings.max_split_size && *settings.max_split_size < large_segment_size) {
    refuse("max_split_size must be at least 20 MiB, got " + mib(*settings.max_split_size));
  }
  if (settings.max_non_split_rounding < large_segment_size) {
    refuse("max_non_split_rounding must be at least 20 MiB, got " +
           mib(settings.max_non_split_rounding));
  }
  for (const std::uint32_t divisions : settings.roundup_power2_divisions) {
    if (divisions == 0 || std::has_single_bit(divisions)) continue;
    refuse("roundup_power2_divisions must be powers of two, or 0 for none, got " +
           std::to_string(divisions));
    break;
  }
  const auto threshold = settings.garbage_collection_threshold;
  if (threshold && !(*threshold > 0.0 && *threshold < 1.0)) {
    refuse("garbage_collection_threshold must lie between 0 and 1, got " +
           std::to_string(*threshold));
  }
  if (settings.process_limit && *settings.process_limit < Bytes{}) {
    refuse("the memory limit of the process must not be negative, got " +
           std::to_string(settings.process_limit->value) + " bytes");
  }
  return problems;
}

Bytes block_size(Bytes request, const PowerOfTwoDivisions& divisions) {
  if (request < min_block_size) return plain_block_size(request);
  const auto size = static_cast<std::uint64_t>(request.value);
  const std::uint32_t n = divisions_for(size, divisions);
  if (n > 1 && request > n * min_block_size) return next_division(size, n);
  return plain_block_size(request);
}

}  // namespace shardwise
