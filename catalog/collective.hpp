// The collectives that a training step issues.
//
// Size convention, as NCCL counts it: all_gather and reduce_scatter by the full gathered size,
// all_reduce and broadcast by the buffer, all_to_all by what one rank sends in total (its own
// share included), send_recv by the message.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardwise {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv,
};

inline constexpr std::array<std::string_view, 6> collective_names{
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"};

constexpr std::string_view name(Collective c) {
  return collective_names[static_cast<std::size_t>(c)];
}

constexpr std::optional<Collective> collective_called(std::string_view name) {
  const auto found = std::find(collective_names.begin(), collective_names.end(), name);
  if (found == collective_names.end()) return std::nullopt;
  return static_cast<Collective>(found - collective_names.begin());
}

// busbw / algbw as nccl-tests prints them (its doc/PERFORMANCE.md), with n ranks: all-reduce
// 2(n-1)/n; gather, scatter and all-to-all (n-1)/n; else 1. None among less than two.
constexpr double bus_factor(Collective kind, std::int64_t ranks) {
  if (ranks <= 1) return 0;
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::send_recv:
      return 1;
  }
  return 1;
}

// The same by the name of one of nccl-tests' programs, which also has collectives that no training
// step issues: gather and scatter (n-1)/n (its src/gather.cu, scatter.cu), reduce 1.
constexpr double bus_factor(std::string_view name, std::int64_t ranks) {
  if (const auto kind = collective_called(name)) return bus_factor(*kind, ranks);
  const bool one_holds_all = name == "gather" || name == "scatter";
  return bus_factor(one_holds_all ? Collective::all_gather : Collective::broadcast, ranks);
}

}  // namespace shardwise
