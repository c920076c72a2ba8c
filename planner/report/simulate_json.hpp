// The answer of `simulate` as JSON.
#pragma once

#include "planner/forecast/simulation.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

Json simulate_json(const ResolvedRequest& request, const Simulation& simulation);

}  // namespace shardwise
