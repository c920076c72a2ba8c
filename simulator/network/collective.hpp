// The collectives that a training step issues.
//
// Size convention, as NCCL counts it: all_gather and reduce_scatter by the full gathered size,
// all_reduce and broadcast by the buffer, all_to_all by what one rank sends in total (its own
// share included), send_recv by the message.
#pragma once

#include <array>
#include <cstdint>
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

}  // namespace shardwise
