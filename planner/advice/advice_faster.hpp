// What would make a plan that fits faster: another plan, whose tensors fit as they are and only the
// allocator's blocks do not, with segments that grow.
#pragma once

#include <vector>

#include "planner/advice/advice.hpp"

namespace shardwise {

// The fastest of ChosenPlan::fragmented with that setting, if it is so much faster that it is worth
// a note; where the chosen plan has room to spare and it has not, as much faster as a tight plan
// has to be. At most one: three are forecast, those with the least bounds of the step.
std::vector<Advice> advise_faster(const ResolvedRequest& request, Method method,
                                  const Cluster& cluster, const ChosenPlan& chosen);

}  // namespace shardwise
