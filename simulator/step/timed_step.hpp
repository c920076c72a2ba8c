// TimedStep: how long a training step takes and what its busiest rank does meanwhile.
//
// Played stage by stage where that is all that is asked (step_player.hpp), else task by task by the
// engine: where ranks differ, where the tasks themselves are wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "simulator/costs/step_costs.hpp"
#include "simulator/step/played_step.hpp"
#include "simulator/step/step_traffic.hpp"
#include "simulator/variation.hpp"

namespace shardwise {

struct StepWish {
  bool unfold = false;                   // every rank its own tasks
  const Variation* variation = nullptr;  // nullptr: none; others need `unfold`
  bool keep = false;                     // the tasks and their times
  // Where the step takes longer, it is enough to say so: a time above this, and nothing else.
  std::optional<SimTime> longest = std::nullopt;
};

struct TimedStep {
  SimTime makespan;
  std::int64_t tasks = 0;
  // The rank whose compute lane is busy most: its place (stage * ranks_per_stage + replica).
  RankSummary busiest;
  std::size_t busiest_rank = 0;
  int ranks_per_stage = 1;
  std::optional<PlayedStep> kept;
};

// Nothing where the step is longer than the clock can count. REQUIRES a legal schedule: the step
// does not deadlock.
std::optional<TimedStep> time_step(const ParallelPlan& plan, const PipelineSchedule& schedule,
                                   const StepCosts& costs, const StepTraffic& traffic,
                                   const StepWish& wish);

}  // namespace shardwise
