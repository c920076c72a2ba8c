// What a node's host RAM has to hold, in a line.
#pragma once

#include <string>

#include "planner/forecast/forecast.hpp"

namespace shardwise {

// "  host RAM per node: 24.0 GiB while training, ..."; `about` goes before the first figure. Where
// such a node usually has less, how much that is.
std::string host_ram_text(const Forecast& forecast, std::string_view about = "");

}  // namespace shardwise
