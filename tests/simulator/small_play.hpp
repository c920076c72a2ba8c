// Plays of memory: of a model of four layers on one GPU, and of a plan's first stage.
#pragma once

#include <optional>
#include <string>

#include "simulator/memory/memory_play.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {

struct SmallPlay {
  Workload workload;
  ParallelPlan plan = plan_of(1);
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  RecomputePolicy policy;
  ModelPartition partition;

  SmallPlay(int sequence, const std::string& recompute)
      : workload(pretraining(llama(4, 512, 8, 8, 2048, 32000), sequence)),
        policy(*recompute_policy(recompute)),
        partition(partition_model(workload, plan, schedule, policy)) {}

  StageMemory play(const PlayVariation& variation = {},
                   std::optional<Bytes> capacity = std::nullopt) const {
    return play_memory(workload, plan, schedule, partition, 0, {}, capacity, variation);
  }
};

// What the first stage of a plan holds.
inline StageMemory first_stage(const Workload& w, const ParallelPlan& plan) {
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  const ModelPartition partition =
      partition_model(w, plan, schedule, *recompute_policy(plan.recompute));
  return play_memory(w, plan, schedule, partition, 0, {}, std::nullopt);
}

}  // namespace shardwise
