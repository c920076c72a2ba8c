// MachineGraph: one node and its way to the network as a directed graph of links.
//
//   GPU - PCIe switch - root complex - host memory          GPU - NVSwitch - GPU
//                       root complex - root complex (SYS)   GPU - GPU (mesh, bridges)
//         PCIe switch - NIC - leaf - spine
//
// Every edge is one direction of a link with its payload bandwidth. All nodes of a group are equal,
// so one stands for them all: leaf and spine are the fabric as that node sees it, and the way to
// another node is the way up, mirrored. A cluster of 16,384 GPUs costs the graph of one node.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "catalog/cluster.hpp"
#include "catalog/link_calibration.hpp"
#include "catalog/units.hpp"

namespace shardwise {

enum class VertexKind : std::uint8_t {
  gpu,
  nvswitch,
  pcie_switch,
  root_complex,
  host_memory,
  nic,
  leaf,
  spine,
};
enum class EdgeKind : std::uint8_t { nvlink, pcie, memory, socket, network };

struct MachineVertex {
  VertexKind kind = VertexKind::gpu;
  int index = 0;  // among its kind
};
struct MachineEdge {
  EdgeKind kind = EdgeKind::pcie;
  BytesPerSecond bandwidth;  // payload, one direction
  int cost = 1;              // routes take the path of least cost: NVLink first, sockets last
  int index = 0;             // 0 .. edges - 1
};
using MachineGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, MachineVertex, MachineEdge>;
using VertexId = boost::graph_traits<MachineGraph>::vertex_descriptor;
using EdgeId = boost::graph_traits<MachineGraph>::edge_descriptor;

// Built in place and never copied: adjacency lists of Boost 1.74 cannot move.
struct Machine {
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  MachineGraph graph;
  std::vector<VertexId> gpus;      // by local rank
  std::vector<VertexId> memories;  // by socket
  std::vector<VertexId> nics;
  std::optional<VertexId> spine;   // absent without a network
  std::vector<int> socket_of_gpu;  // by local rank
  std::vector<const Gpu*> cards;   // by local rank; the cluster outlives the machine
  const Node* node = nullptr;
  int chassis = 1;  // machines that form one NVLink domain
};

// One machine per node group, or a single one where the groups share a box. Graphs refer to
// `cluster`, which outlives them.
std::deque<Machine> build_machines(const Cluster& cluster, const LinkCalibration& links);

// The ways of least cost from one vertex to all others, found at once.
class Routes {
 public:
  Routes(const Machine& machine, VertexId from);
  // The edges to `to`, in order. REQUIRES that there is a way.
  std::vector<EdgeId> to(VertexId to) const;

 private:
  const Machine* machine_;
  VertexId from_;
  std::vector<VertexId> before_;  // the vertex before each, on the way from `from_`
};

// The payload bandwidth of a card's slot, one direction.
BytesPerSecond pcie_bandwidth(const Gpu& gpu, const Node& node, const HostLinks& links);

}  // namespace shardwise
