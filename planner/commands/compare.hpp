// `shardwise compare MODEL --gpus ... --plan A --plan B ...`: plans side by side; without --plan
// those that are usually compared (planner/choice/usual_plans.hpp).
#pragma once

#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

// The exit code: 0 answered, 3 with `require_fit` where no plan fits (of several schedules: none of
// them, as asked), 2 and 4 for problems.
int compare(const Request& request, const Facts& facts, bool require_fit, const Output& output);

}  // namespace shardwise
