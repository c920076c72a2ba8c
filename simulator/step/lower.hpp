// Lowering: a plan, its pipeline schedule and its costs become a TaskGraph.
//
// Every stage of the pipeline is played by `data x context x tensor` equal ranks. Folded, one of
// them stands for all; unfolded, each has its lanes and a collective is one joint task over the
// lanes of its group. Both give the same times to the picosecond, because the ranks of a group
// start together and take equally long. `traffic` says which communication shares links with which;
// without it nothing shares any. `variation` and the paces of ranks show only where every rank is
// played.
#pragma once

#include "simulator/costs/step_costs.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/step/step_traffic.hpp"
#include "simulator/step/task_graph.hpp"
#include "simulator/variation.hpp"

namespace shardwise {

struct LoweredStep {
  TaskGraph graph;
  int ranks_per_stage = 1;  // rank = stage * ranks_per_stage + replica
};

// `plan` with the microbatches of the rank that runs most.
ParallelPlan rounds_of(ParallelPlan plan, const StepCosts& costs);

LoweredStep lower(const ParallelPlan& plan, const PipelineSchedule& schedule,
                  const StepCosts& costs, bool unfold, const StepTraffic* traffic = nullptr,
                  const Variation* variation = nullptr);

}  // namespace shardwise
