// Picoseconds: durations on the simulated clock.
#pragma once

#include <cstdint>
#include <limits>

#include "catalog/units.hpp"

namespace shardwise {

// A duration on the simulated clock, exact: sums of these balance to the picosecond.
using Picoseconds = Quantity<struct PicosecondsTag, std::int64_t>;

constexpr Seconds seconds(Picoseconds duration) {
  return Seconds(static_cast<double>(duration.value) * 1e-12);
}

// One after the other, neither negative; the longest there is where together they are longer.
constexpr Picoseconds in_turn(Picoseconds a, Picoseconds b) {
  constexpr Picoseconds longest(std::numeric_limits<std::int64_t>::max());
  return a > longest - b ? longest : a + b;
}

// As a task's duration. REQUIRES a number that is not negative; one beyond the clock's range is the
// longest there is.
Picoseconds to_picoseconds(Seconds duration);

}  // namespace shardwise
