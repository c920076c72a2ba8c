// Nodes, networks and the cluster that a request names.
//
// A cluster is one or more node groups joined by one network. `6x24GB` is one group of one node;
// `2x3090+2x4090` is one node that mixes two kinds; `16xH100-SXM` is two nodes of eight.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/gpu.hpp"
#include "catalog/provenance.hpp"
#include "catalog/units.hpp"

namespace shardwise {

enum class IntraLink {
  nvswitch,      // every pair at full rate (NVSwitch, Infinity Fabric mesh, NVL72)
  nvlink_mesh,   // direct links without a switch: the hybrid mesh of DGX-1
  nvlink_pairs,  // bridges join cards two by two; other pairs use PCIe
  nvlink_fours,  // bridges join each card to three others; other pairs use PCIe
  pcie_switch,   // cards of one switch reach each other below the root complex
  pcie_host,     // every pair goes through the root complex
};

struct Node {
  std::string id;  // "aws-p4d.24xlarge", "desktop-2x"
  std::string name;
  std::vector<std::string> aliases;
  std::string gpu;  // id in devices/; empty: any (a generic box)
  int gpus = 1;     // per node
  IntraLink intra_link = IntraLink::pcie_host;
  std::optional<BytesPerSecond>
      nvlink_override;          // where the node wires fewer links than the GPU has
  int nvlink_domain_nodes = 1;  // nodes that share one NVLink domain (NVL72: 18 trays of 4)
  int cpu_sockets = 1;
  std::optional<int> pcie_lanes_per_gpu;  // fewer than the card's own (x8 desktop slots)
  std::optional<int> pcie_generation;     // of the host, where older than the card's
  std::optional<Bytes> host_ram;
  std::optional<BytesPerSecond> host_memory_bandwidth;
  std::optional<BytesPerSecond> nvme_bandwidth;
  std::optional<Bytes> nvme;
  std::string network;  // id in networks/ that its NICs speak; empty: none
  int nic_count = 0;
  BytesPerSecond nic_bandwidth;  // one NIC, one direction
  // [W] to which its owner holds each GPU; where the CPU is a part of the module, both together.
  std::optional<double> power_limit_w;
  std::vector<Market> default_for;  // cards without a node of their own get the smallest such box
  std::string tray;                 // of a rack: the id of the node that it holds `trays` of
  int trays = 0;
  std::vector<std::string> notes;
  Provenance provenance;
};

struct Network {
  std::string id;  // "infiniband-hdr"
  std::string name;
  std::vector<std::string> aliases;
  std::string kind;               // "ethernet" | "roce" | "infiniband" | "efa" | "nvlink" | ...
  BytesPerSecond port_bandwidth;  // one port, one direction, line rate
  double efficiency = 0.9;        // payload rate of a large message / line rate
  // What the sockets of one connection carry, however wide the port; 0: as much as the port.
  BytesPerSecond stream_bandwidth{};
  double share = 1;               // of its ports that other jobs leave, (0, 1]
  Seconds latency;                // one small message, NIC to NIC
  Seconds message{};              // that one message of a ring keeps its sender busy, at least
  bool gpu_direct = true;         // NIC reads GPU memory without a host copy
  int communicator_nics = 0;      // of a node in one communicator's rings; 0: as many as GPUs
  double oversubscription = 1.0;  // leaf-to-spine: 1 = non-blocking, 3 = 3:1
  // Measured fall of collective bandwidth with the number of nodes, relative to two nodes;
  // pairs (nodes, fraction), ascending; empty where nothing was published.
  std::vector<std::pair<int, double>> scaling;
  std::vector<std::string> notes;
  Provenance provenance;
};

// A run of equal nodes. `gpus_used` per node may be less than the node holds.
struct NodeGroup {
  Gpu gpu;
  Node node;
  int nodes = 1;
  int gpus_per_node = 1;
  int gpus() const { return nodes * gpus_per_node; }
};

struct Cluster {
  std::vector<NodeGroup> groups;   // ranks are numbered group by group, node by node
  std::optional<Network> network;  // absent: a single node
  std::string spoken;              // as the user said it: "6x24GB"
  bool mixed_in_one_node = false;  // groups are cards of one box rather than separate nodes

  int gpus() const {
    int n = 0;
    for (const NodeGroup& g : groups) n += g.gpus();
    return n;
  }
  int nodes() const {
    if (mixed_in_one_node) return 1;
    int n = 0;
    for (const NodeGroup& g : groups) n += g.nodes;
    return n;
  }
  // GPUs in a node of this group, those of the other groups with them where all lie in one box.
  int gpus_of_node(const NodeGroup& group) const {
    return mixed_in_one_node ? gpus() : group.gpus_per_node;
  }
  const NodeGroup& group_of(int rank) const;  // REQUIRES 0 <= rank < gpus()
};

}  // namespace shardwise
