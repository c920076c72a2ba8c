// StepPlayer: a folded training step without a task graph.
//
// The end of a task is fixed by the ends before it (task_graph.hpp), so a stage's tasks need no
// clock: each is played as soon as what it waits for is known, whether or not other stages are as
// far. Only flows, whose ends depend on who shares their links when, are started and ended in the
// order of time; whatever is not played yet waits for one of them, so nothing can come to light
// that should have started before. The tasks come from a few slot programs per kind of stage.
//
// The times are those of the engine on the lowered graph; what is not kept is when each task ran.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/costs/step_costs.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/step/step_traffic.hpp"
#include "simulator/step/timeline.hpp"

namespace shardwise {

struct PlayedStages {
  SimTime makespan;
  std::int64_t tasks = 0;    // of the folded task graph
  int busiest = 0;           // the stage whose compute lane is busy most, the first of several
  RankSummary summary;       // of its ranks
  std::int64_t skipped = 0;  // of the tasks: copied from a period before (step_fold.hpp)
  bool cut = false;          // ended early: the step takes `makespan` at least
};

struct StepPlayWish {
  bool folds = true;  // what repeats is not played again, which changes nothing but `skipped`
  // Where it is certain that the step takes longer, nobody asks for how long: it takes at least
  // until the compute mark of a stage's slot, and from then on the spans of its later slots.
  std::optional<SimTime> longest = std::nullopt;
};

// Nothing where the step deadlocks or is longer than the clock can count. REQUIRES costs for every
// stage. `traffic`: nullptr where no two tasks share a link.
std::optional<PlayedStages> play_stages(const ParallelPlan& plan, const PipelineSchedule& schedule,
                                        const StepCosts& costs,
                                        const StepTraffic* traffic = nullptr,
                                        const StepPlayWish& wish = {});

}  // namespace shardwise
