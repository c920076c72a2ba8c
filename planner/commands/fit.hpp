// `shardwise fit MODEL --gpus ...`: does it fit, on which plan, and what would make it fit?
#pragma once

#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

// The exit code: 0 answered, 3 with `require_fit` where nothing fits, 2 and 4 for problems.
int fit(const Request& request, const Facts& facts, bool require_fit, const Output& output);

}  // namespace shardwise
