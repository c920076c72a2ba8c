// The verdict on a forecast, host RAM included.
#pragma once

#include "planner/forecast/forecast.hpp"

namespace shardwise {

// Host RAM decides only where somebody has stated it: a catalogued box says how much such a node
// usually has, which is worth a warning and no more.
inline Verdict judged(const Forecast& forecast, bool host_ram_stated) {
  return host_ram_stated && !forecast.host_fits ? Verdict::does_not_fit : forecast.verdict;
}

// A run that may not start has to promise this many times the speed: assumed, a preference and no
// forecast.
constexpr double tight_has_to_save = 2;

}  // namespace shardwise
