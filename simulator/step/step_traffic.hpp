// StepTraffic: which links the communication of a step uses, as flow classes of a FlowNetwork.
//
// The collective model says what a kind of communication takes while nothing else uses the links
// (all ranks of a pipeline stage do it together: that much is in the closed forms). What happens
// where different kinds, or different stages of one node, meet on a link is decided by the engine,
// for which this file says how much of each link a kind takes. With T the time that all its
// messages of a step take alone, and B(l) the bytes that they put on link l,
//
//   share of link l at full speed = B(l) / (T x bandwidth(l))
//
// One class stands for all messages of a kind on a stage, its members for the groups (or ranks)
// of the stage that do it side by side; fair is what gives every rank the same bytes per second.
//
// Links are those of machine_flows.hpp: PCIe, root complexes, sockets, NVLink, NICs, host memory.
// Nodes whose GPUs all play one stage are alike, so one stands for them all, and so does one of the
// links of a node that everything loads alike. Links that cannot become short, because everything
// together fits, are left out, and so are the kinds that then share nothing: most steps have few
// flows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "catalog/cluster.hpp"
#include "simulator/costs/step_costs.hpp"
#include "simulator/network/collective_model.hpp"
#include "simulator/network/flow_network.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {

enum class TrafficKind : std::uint8_t {
  tensor,
  context,
  expert,
  receive_forward,   // activations from the stage before
  receive_backward,  // their gradients from the stage after
  gather,
  reduce,
  copy_in,   // host memory to GPU
  copy_out,  // and back
  host_optimizer,
};
inline constexpr std::size_t traffic_kind_count = 10;

struct StepTraffic {
  FlowNetwork network;
  // The class of each kind on each stage; absent where it shares no link that can become short.
  std::vector<std::array<std::optional<FlowClassId>, traffic_kind_count>> stages;

  std::optional<FlowClassId> at(int stage, TrafficKind kind) const {
    return stages[static_cast<std::size_t>(stage)][static_cast<std::size_t>(kind)];
  }
};

StepTraffic step_traffic(const ParallelPlan& plan, const Cluster& cluster, const RankLayout& layout,
                         const CollectiveModel& collectives, const StepCosts& costs);

}  // namespace shardwise
