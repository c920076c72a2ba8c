// Reuse through the L2 cache: which bytes an operator reads are still there from whoever made them.
//
// A cache keeps what was touched last. Between the kernel that writes a tensor and the one that
// reads it, other kernels pass their own bytes through the cache; where these are more than it
// holds, the reader finds nothing. Of a kernel that writes as it goes, half of its traffic comes
// after the mean byte that it writes. Saved tensors, which backward reads again, are always cold.
#pragma once

#include <vector>

#include "catalog/units.hpp"
#include "simulator/costs/kernel_model.hpp"
#include "simulator/graphs/operators.hpp"

namespace shardwise {

// Of an operator's reads in one pass, what comes from memory.
struct ColdBytes {
  Bytes forward, backward;
};

// One per operator of the graph.
std::vector<ColdBytes> cold_bytes(const LayerGraph& graph, const KernelModel& kernels);

}  // namespace shardwise
