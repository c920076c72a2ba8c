// Topology: how GPUs reach each other on a cluster, resolved once.
//
// The machine is a graph of links (machine_graph.hpp). From it follow the path between two ranks
// and its bottleneck, NCCL's choice of transport for that path, and what a rank gets when *all*
// GPUs of a box communicate in rings at once: with flows routed over the graph and every flow at
// the same rate r,
//
//   r = min over edges  bandwidth(e) / sum of flows over e      (a flow that bounces through host
//                                                                memory weighs 1 / shm on PCIe)
//
// Transports are tried in NCCL's order: P2P (NVLink, or PCIe where the driver allows it and the
// path is near enough), SHM (through host memory), NET. Source: NCCL 2.30.7 src/transport.cc:15-42,
// src/graph/paths.cc:355-412.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/link_calibration.hpp"
#include "catalog/units.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {

struct Machine;

enum class Transport : std::uint8_t { p2p, shm, net };
constexpr std::string_view name(Transport t) {
  return t == Transport::p2p ? "P2P" : t == Transport::shm ? "SHM" : "NET";
}

// The way between two ranks when nobody else communicates.
struct Path {
  PathKind kind = PathKind::loc;
  Transport transport = Transport::p2p;
  BytesPerSecond bandwidth;  // what NCCL's kernels reach over it, one direction
};

inline constexpr BytesPerSecond unbounded_rate{std::numeric_limits<double>::infinity()};

// What each rank of a group gets inside its node while all sibling groups are as busy.
struct LocalLinks {
  PathKind kind = PathKind::loc;  // the worst of the ring
  Transport transport = Transport::p2p;
  BytesPerSecond ring;      // to the next rank of a ring
  BytesPerSecond exchange;  // to all others at once, in sum
};

class Topology {
 public:
  // REQUIRES at least one GPU, and a network where there are several nodes.
  Topology(const Cluster& cluster, const LinkCalibration& links);

  int gpus_per_node() const { return gpus_per_node_; }
  Path path(int rank_a, int rank_b) const;

  // REQUIRES ranks x stride <= gpus_per_node, ranks >= 2.
  const LocalLinks& local(int ranks, int stride) const;

  // What one group gets of its node's NICs, one direction; `exchange`: traffic goes to all nodes
  // rather than to neighbours. REQUIRES shape.nodes > 1.
  BytesPerSecond network(const GroupShape& shape, bool exchange) const;
  // How many times longer its traffic keeps the NICs busy than between two nodes of one leaf.
  double fabric_slowdown(const GroupShape& shape, bool exchange) const;
  bool staged() const { return staged_; }      // NICs reach GPU memory through the host's
  BytesPerSecond nic() const { return nic_; }  // payload of one NIC
  BytesPerSecond gpu_to_nic() const { return gpu_to_nic_; }  // one GPU's way to its NICs
  Seconds network_message() const { return message_; }       // see Network::message
  Seconds network_latency() const { return latency_; }       // NIC to NIC; zero without a network

  // Host memory to one GPU, where the first `gpus` of the node copy at once.
  // REQUIRES 1 <= gpus <= gpus_per_node.
  BytesPerSecond host_copy(int gpus) const {
    return host_copy_[static_cast<std::size_t>(gpus - 1)];
  }

  bool in_switch_reduction() const { return in_switch_reduction_; }
  bool several_chassis() const { return several_chassis_; }  // one NVLink domain, many machines
  const GpuGeneration& generation() const { return generation_; }  // of the oldest GPU
  double compute_capability() const { return compute_capability_; }
  int communicator_nics() const { return communicator_nics_; }  // see Network::communicator_nics

 private:
  void add_links(const Machine& machine, const LinkCalibration& links);
  void add_generation(const Machine& machine, const LinkCalibration& links);
  void add_nics(const Machine& machine, const Network& network, const LinkCalibration& links);
  double scaling(int nodes) const;

  int gpus_per_node_ = 1;
  std::vector<Path> pairs_;         // [a x gpus_per_node + b]
  std::vector<LocalLinks> locals_;  // [(ranks - 1) x gpus_per_node + stride - 1]
  GpuGeneration generation_;
  double compute_capability_ = 0;
  bool in_switch_reduction_ = false;
  bool several_chassis_ = false;

  int nics_ = 0, communicator_nics_ = 0;
  BytesPerSecond nic_;
  BytesPerSecond gpu_to_nic_;  // one GPU's way to its NIC
  double oversubscription_ = 1;
  int nodes_per_leaf_ = 1;
  std::vector<std::pair<int, double>> scaling_;
  Seconds latency_, message_{};
  bool staged_ = false;
  std::vector<BytesPerSecond> host_copy_;  // by the number of GPUs that copy at once
};

}  // namespace shardwise
