// StepPlayer: a folded training step without a task graph and without events.
//
// Where no two tasks share a link, the end of a task is fixed by the ends before it
// (task_graph.hpp), so the stages can be played slot by slot, each slot as soon as what other
// stages send is known, from a few slot programs per kind of stage. The times are those of the
// engine on the lowered graph, to the picosecond; what is not kept is when each single task ran.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/step_costs.hpp"
#include "simulator/timeline.hpp"

namespace shardwise {

struct PlayedStages {
  SimTime makespan;
  std::int64_t tasks = 0;  // of the folded task graph
  int busiest = 0;         // the stage whose compute lane is busy most, the first of several
  RankSummary summary;     // of its ranks
};

// Nothing where the step deadlocks or is longer than the clock can count. REQUIRES costs for every
// stage.
std::optional<PlayedStages> play_stages(const ParallelPlan& plan, const PipelineSchedule& schedule,
                                        const StepCosts& costs);

}  // namespace shardwise
