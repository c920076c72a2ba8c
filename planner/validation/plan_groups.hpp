// PlanGroup: runs that answer one question with several plans, on which a ranking is judged.
//
// `by_size` takes runs for one question where source, model, GPUs, tokens of a step, number format
// and method agree, as the peers' figures for these runs do; each run is an entry. What else
// differs (framework, optimizer, release, power limit) is then judged as if it were the plan.
//
// `by_all_told` asks for more: the whole model, the machine and what is trained, and how, are the
// same as far as their records tell. A plan is the layout over GPUs, microbatch, recomputation and
// offload; gradient accumulation follows from it. Runs of one plan (repeats, or the same in another
// release, which only prose tells) are one entry: the median of what was measured, and of what is
// forecast.
#pragma once

#include <string>
#include <vector>

#include "planner/validation/validation.hpp"

namespace shardwise {

struct RankedPlan {
  double measured = 0, predicted = 0;  // step time [s]
};

struct PlanGroup {
  const RunRecord* first = nullptr;  // says what all have in common
  int runs = 0;
  std::vector<RankedPlan> plans;  // in order of their first run
};

enum class Grouping { by_size, by_all_told };

// Of the runs whose step time is measured and forecast; groups in order of source and question.
std::vector<PlanGroup> plan_groups(const std::vector<ReplayedRun>& runs, Grouping grouping);

}  // namespace shardwise
