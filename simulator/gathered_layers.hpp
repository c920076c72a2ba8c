// Which layers' weights stay gathered from forward to backward where a framework lets the others go
// (DeepSpeed's ZeRO-3).
#pragma once

#include <vector>

#include "simulator/model_partition.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Whether the framework keeps any in this plan.
bool keeps_layers_gathered(const Workload& workload, const ParallelPlan& plan);

// For each of a chunk's layers, in order, whether it stays; false for embedding and head.
std::vector<bool> layers_kept_gathered(const Workload& workload, const ParallelPlan& plan,
                                       const std::vector<ChunkLayer>& layers);

}  // namespace shardwise
