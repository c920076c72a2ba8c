// The answer of `simulate` for the terminal.
#pragma once

#include <string>

#include "planner/forecast/simulation.hpp"

namespace shardwise {

std::string simulate_text(const ResolvedRequest& request, const Simulation& simulation);

}  // namespace shardwise
