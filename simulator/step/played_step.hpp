// PlayedStep: one training step as it was played: its tasks, and when each of them ran.
#pragma once

#include "simulator/step/lower.hpp"
#include "simulator/step/timeline.hpp"

namespace shardwise {

struct PlayedStep {
  LoweredStep lowered;
  Timeline timeline;  // of lowered.graph

  const TaskGraph& graph() const { return lowered.graph; }
  // The rank that stands for a stage: the first of its replicas.
  int rank_of_stage(int stage) const { return stage * lowered.ranks_per_stage; }
  int stages() const { return lowered.graph.rank_count() / lowered.ranks_per_stage; }
};

}  // namespace shardwise
