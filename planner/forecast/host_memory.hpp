// Host RAM of one node: what offloading keeps there, and what loading the weights takes.
#pragma once

#include "catalog/profile.hpp"
#include "planner/forecast/forecast.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {

// What one rank may keep on the host.
struct HostShare {
  const LayerState& states;
  Bytes activations;    // offloaded ones, the most at once
  Bytes communicators;  // pinned buffers
  Bytes paged_out;      // states in managed memory that find no room on the GPU
};

// Of the node that has least left, all ranks being taken to hold what `share` says.
HostMemory host_memory(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster,
                       const HostMemoryFacts& facts, const HostShare& share);

}  // namespace shardwise
