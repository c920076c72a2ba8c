// Bus bandwidth / algorithm bandwidth as nccl-tests prints them (its doc/PERFORMANCE.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwise {

// all_reduce 2(n-1)/n; all_gather, reduce_scatter and all_to_all (n-1)/n; 1 for the others.
constexpr double bus_factor(std::string_view collective, std::int64_t ranks) {
  if (ranks < 2) return 1;
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (collective == "all_reduce") return 2 * share;
  if (collective == "all_gather" || collective == "reduce_scatter" || collective == "all_to_all")
    return share;
  return 1;
}

}  // namespace shardwise
