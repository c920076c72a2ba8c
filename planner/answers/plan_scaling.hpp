// How the best plan scales over a range of cluster sizes: each size is searched by itself, as it
// would be if it were asked for alone with the range's batch and framework.
#pragma once

#include "planner/answers/plan_answer.hpp"

namespace shardwise {

// Fills in `scaling`, the result over all sizes and where doubling stops paying; notes what was
// given up where nothing fits otherwise, and what starts the plans.
void fill_scaling(PlanAnswer& answer, const SearchWish& wish, const Facts& facts);

}  // namespace shardwise
