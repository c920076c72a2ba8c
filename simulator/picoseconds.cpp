#include "simulator/picoseconds.hpp"

#include <cmath>
#include <limits>

#include "catalog/require.hpp"

namespace shardwise {

Picoseconds to_picoseconds(Seconds duration) {
  require(duration.value >= 0.0, "a task's duration is a number, and not negative");
  constexpr double kTooLong = 9.2e18;  // just inside int64; larger doubles would not convert
  const double picoseconds = duration.value * 1e12;
  if (picoseconds >= kTooLong) return Picoseconds(std::numeric_limits<std::int64_t>::max());
  return Picoseconds(std::llround(picoseconds));
}

}  // namespace shardwise
