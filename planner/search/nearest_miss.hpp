// Which of two plans that do not fit is nearer to fitting.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "planner/forecast/forecast.hpp"

namespace shardwise {

// First by what tensors lack on a GPU, then by what the host lacks. Where the host is what lacks,
// GPUs with room need no more of it: offloading would be in vain.
bool nearer(const Forecast& a, const Forecast& b);

// What tensors lack in the plan that lacks least, of those that have been looked at on any thread:
// no plan that lacks more is nearer, so its play may end there.
class LeastLack {
 public:
  void learn(const Forecast& missed);
  std::optional<Bytes> known() const {
    const std::int64_t bytes = bytes_;
    return bytes == none ? std::nullopt : std::make_optional(Bytes(bytes));
  }

 private:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> bytes_{none};
};

}  // namespace shardwise
