// Memory that NCCL takes for one communicator on one rank, outside the caching allocator.
//
//   device = fixed + channels x (ring + tree) + NVLS buffer + point-to-point peers
//   NVLS buffer = channels x 2 x (chunk x 8 steps) x heads
//
// Connections are made by the first collective that needs them, so the memory depends on what the
// group is used for; an all-reduce takes ring and tree both. Before NCCL 2.22 (June 2024; PyTorch
// has it since 2.7) every communicator connected both when it was made (src/init.cc of 2.10.3 to
// 2.21.5: "Connect with prev/next for each ring", "Connect Trees"). Buffers of the SHM transport
// lie in host memory. Sources: NCCL 2.30.7
// src/init.cc:810-813, src/transport/p2p.cc:407-491, src/transport/nvls.cc:409-436,
// src/transport/net.cc:646-666; the sums per channel: NVIDIA/nccl#964 (4 x A100).
#pragma once

#include <initializer_list>

#include "catalog/units.hpp"
#include "simulator/network/collective_model.hpp"
#include "simulator/rank_layout.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// The collectives that a communicator runs.
struct CollectiveSet {
  unsigned bits = 0;
  constexpr CollectiveSet() = default;
  constexpr CollectiveSet(std::initializer_list<Collective> kinds) {
    for (Collective k : kinds) add(k);
  }
  constexpr void add(Collective kind) { bits |= 1u << static_cast<unsigned>(kind); }
  constexpr bool has(Collective kind) const {
    return (bits >> static_cast<unsigned>(kind) & 1u) != 0;
  }
  friend bool operator==(CollectiveSet, CollectiveSet) = default;
};

struct CommunicatorMemory {
  Bytes device;
  Bytes host;  // pinned, per rank
};

// Nothing for one rank or no collective.
CommunicatorMemory nccl_memory(const CollectiveModel& model, const GroupShape& shape,
                               CollectiveSet used);

// All that a rank of the plan opens: of a pipeline, as its first stage does.
CommunicatorMemory plan_communicators(const Workload& workload, const ParallelPlan& plan,
                                      const Cluster& cluster, const RankLayout& layout,
                                      const CollectiveModel& model);

// Channels of a ring: what the graph search finds, doubled (NCCL src/graph/connect.cc:459-460).
// Each is a thread block that holds one multiprocessor while a collective runs.
int ring_channels(const CollectiveModel& model, const GroupLinks& links);

}  // namespace shardwise
