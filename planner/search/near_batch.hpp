// A plan for a batch that divides over nothing.
//
// Who has ten GPUs and names 48 sequences wants the answer for ten GPUs. Frameworks are told the
// sequences of a rank and give like ranks like shares, so that the run would take another batch: it
// is answered for the nearest one that divides, which is said.
#pragma once

#include <string>

#include "planner/search/plan_choice.hpp"

namespace shardwise {

// The multiple of `gpus` next to a batch; of two that are as near, the larger.
int nearest_batch(int batch, int gpus);
std::string told_of_near_batch(int batch, int gpus);

// As choose_plan, and where the batch alone stands in the way, for the nearest one. Plans that
// were asked for keep their problems.
Result<ChosenPlan> choose_near_plan(const ResolvedRequest& request, Method method,
                                    const Cluster& cluster, const LaunchTarget* only = nullptr,
                                    Looked looked = Looked::decisive);

}  // namespace shardwise
