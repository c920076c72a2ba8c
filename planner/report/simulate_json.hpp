// The answer of `simulate` as JSON.
#pragma once

#include "planner/report/json_parts.hpp"
#include "planner/simulation.hpp"

namespace shardwise {

Json simulate_json(const ResolvedRequest& request, const Simulation& simulation);

}  // namespace shardwise
