// Pipeline schedules side by side: each under the same plan, and each at its best within the same
// memory.
//
// "The same memory" is a budget per GPU on the worst stage: what the asked plan needs, unless a
// size is given. Within it a schedule may choose the microbatch (powers of two that divide the
// batch; the global batch stays) and what is recomputed. So a schedule that holds fewer
// microbatches can spend what it saves on larger ones or on fewer re-runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

struct PlayedPlan {
  ParallelPlan plan;
  Forecast forecast;
};

struct ScheduleRow {
  std::string schedule;
  int chunks = 1;                          // per stage
  std::optional<PlayedPlan> as_asked;      // the asked plan with this schedule
  std::string refused;                     // why it cannot run, where it cannot
  std::optional<PlayedPlan> equal_memory;  // the fastest within the budget, if any is
};

struct ScheduleComparison {
  Question asked;
  Bytes budget;
  std::vector<ScheduleRow> rows;  // in the order of pipeline_schedules()
};

// Problems: those of the plan itself, or a plan without a pipeline.
Result<ScheduleComparison> compare_schedules(const ResolvedRequest& request,
                                             const std::string& plan, std::optional<Bytes> budget);

// The layers of `asked`, whose stages keep theirs, for a schedule with other chunks per stage: each
// stage deals its layers to its chunks as evenly as they go. Empty where `asked` says nothing.
std::vector<int> layers_under(const ParallelPlan& asked, const ParallelPlan& changed);

}  // namespace shardwise
