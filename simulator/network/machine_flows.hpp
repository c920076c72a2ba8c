// MachineFlows: traffic between the GPUs of one machine, routed over its graph.
//
// Each ordered pair of GPUs has a transport and the edges that a unit of its traffic loads. A unit
// weighs more than 1 on PCIe, as kernels that copy over it reach a part of its payload rate. With
// all flows at one rate r,
//
//   r = min over edges  bandwidth(e) / sum of weights over e
//
// Three kinds of links stand beside the edges of the graph: all NICs of the machine together, out
// and in, and the memory of a socket, which every byte passes as often as it is read or written.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catalog/link_calibration.hpp"
#include "catalog/units.hpp"
#include "simulator/network/machine_graph.hpp"
#include "simulator/network/topology.hpp"

namespace shardwise {

// The worst kind of link on a way (NCCL path types).
PathKind path_kind(const Machine& machine, const std::vector<EdgeId>& path);

struct PairRoute {
  struct Load {
    int edge;
    double weight;
  };
  PathKind kind = PathKind::loc;
  Transport transport = Transport::p2p;
  std::vector<Load> loads;
};

enum class Direction : std::uint8_t { out, in };  // of a GPU

class MachineFlows {
 public:
  MachineFlows(const Machine& machine, const LinkCalibration& links);

  int gpus() const { return gpus_; }
  const PairRoute& pair(int a, int b) const {
    return pairs_[static_cast<std::size_t>(a * gpus_ + b)];
  }
  // The NVLink straight from one GPU to another; zero without one. A switch is not straight.
  BytesPerSecond direct(int a, int b) const;
  // The slowest GPU's link to the NVSwitch that joins all of them, where there is one.
  std::optional<BytesPerSecond> through_switch() const { return through_switch_; }

  void clear();
  void add(int a, int b, double amount);  // traffic between two GPUs
  // The same without the weights: what crosses each link. NCCL's kernels wait for one another over
  // PCIe; a copy engine can use the time.
  void add_bytes(int a, int b, double amount);
  // Copy engine, from the memory of the GPU's socket or to it.
  void add_host_copy(int gpu, Direction direction = Direction::in, double amount = 1);
  // Between a GPU and other machines, over the NIC nearest to it. `staged`: through host memory.
  // `nic_amount`: what it costs the NICs. REQUIRES a network.
  void add_network(int gpu, Direction direction, double amount, double nic_amount, bool staged);
  // Reads and writes of the CPUs, spread over their memories. REQUIRES knows_memory().
  void add_memory_traffic(double amount);
  BytesPerSecond rate() const;  // of every flow since clear(); infinite without flows
  bool knows_memory() const { return machine_.node->host_memory_bandwidth.has_value(); }

  // The links with traffic since clear(), in the order in which they got it, and how much each has.
  const std::vector<int>& loaded() const { return loaded_; }
  double load(int link) const { return flows_[static_cast<std::size_t>(link)]; }
  BytesPerSecond bandwidth(int link) const { return bandwidth_[static_cast<std::size_t>(link)]; }
  BytesPerSecond rate_alone(int a, int b) const;  // of traffic between two GPUs, and no other

 private:
  int nics_link(Direction d) const { return edges_ + (d == Direction::out ? 0 : 1); }
  int memory_link(int socket) const { return edges_ + 2 + socket; }
  void add_bounce(int a, int b, double amount);
  // A GPU's way to its NIC or to the memory of its socket: edges by direction, without those of the
  // network, which are counted for all NICs together.
  struct Way {
    std::vector<int> out, in;
  };
  Way way(int gpu, VertexId to) const;
  void add_way(const Way& way, Direction direction, double amount);
  PairRoute pair_route(int a, int b) const;
  Transport transport(int a, int b, PathKind kind) const;
  void add_load(int link, double amount);
  // The weights are those of PCIe links: a card's own slot, and what cards below a switch share.
  void append(PairRoute& route, const std::vector<EdgeId>& path, double slot_weight,
              double shared_weight) const;

  const Machine& machine_;
  const LinkCalibration& links_;
  int gpus_;
  int edges_;                              // of the graph; the other links follow
  std::vector<Routes> from_gpu_;           // by local rank
  std::vector<Routes> from_memory_;        // by socket
  std::vector<Way> to_memory_, to_nic_;    // by local rank; the latter where there are NICs
  std::vector<BytesPerSecond> bandwidth_;  // by link
  std::vector<double> flows_;              // by link
  std::vector<int> loaded_;                // links with flows
  std::optional<BytesPerSecond> through_switch_;
  std::vector<PairRoute> pairs_;
};

// What `ranks` GPUs that lie `stride` apart get while all such groups of the machine are busy.
// REQUIRES ranks x stride <= gpus <= flows.gpus().
LocalLinks local_links(MachineFlows& flows, int ranks, int stride, int gpus);

}  // namespace shardwise
