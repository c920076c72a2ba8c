// Machines for the tests of links: only what the link models read.
#pragma once

#include <optional>
#include <string>

#include "catalog/cluster.hpp"
#include "catalog/link_calibration.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise::link_machines {

inline LinkCalibration calibration() {
  auto loaded = load_link_calibration(source_dir() + "/catalog/profiles/nccl-2.30.json");
  REQUIRE(loaded);
  return *loaded;
}

// The same without what NCCL's tuner leaves out.
inline LinkCalibration tuner_alone() {
  LinkCalibration links = calibration();
  for (GpuGeneration& g : links.generations) {
    g.ring_fraction = 1;
    g.own_share = g.own_share_of_all_reduce = 0;
    g.filling_least = g.filling_most = Seconds(0);
  }
  return links;
}

inline Gpu card(std::string vendor, double compute_capability, int pcie_generation,
                double nvlink_gb_per_s, PeerAccess peer = PeerAccess::yes) {
  Gpu gpu;
  gpu.vendor = std::move(vendor);
  gpu.compute_capability = compute_capability;
  gpu.pcie_generation = pcie_generation;
  gpu.pcie_lanes = 16;
  gpu.nvlink = BytesPerSecond(nvlink_gb_per_s * 1e9);
  gpu.peer_over_pcie = peer;
  return gpu;
}
inline Gpu rtx_4090() { return card("nvidia", 8.9, 4, 0, PeerAccess::no); }
inline Gpu rtx_3090() { return card("nvidia", 8.6, 4, 56.25, PeerAccess::unknown); }
inline Gpu l40s() { return card("nvidia", 8.9, 4, 0); }
inline Gpu a40() { return card("nvidia", 8.6, 4, 56.25); }
inline Gpu v100() { return card("nvidia", 7.0, 3, 150); }
inline Gpu a100() { return card("nvidia", 8.0, 4, 300); }
inline Gpu h100() { return card("nvidia", 9.0, 5, 450); }
inline Gpu b200() { return card("nvidia", 10.0, 5, 900); }
inline Gpu mi300x() { return card("amd", 0, 5, 448); }

// Datasheet rates of NICs, one direction; efficiencies as catalog/networks gives such fabrics.
inline Network network(double port_gb_per_s, double efficiency, double latency_us) {
  Network n;
  n.port_bandwidth = BytesPerSecond(port_gb_per_s * 1e9);
  n.efficiency = efficiency;
  n.latency = Seconds(latency_us * 1e-6);
  return n;
}

inline Node node(int gpus, IntraLink link, int sockets = 2, int nics = 0, double nic_gb_per_s = 0) {
  Node n;
  n.gpus = gpus;
  n.intra_link = link;
  n.cpu_sockets = sockets;
  n.nic_count = nics;
  n.nic_bandwidth = BytesPerSecond(nic_gb_per_s * 1e9);
  return n;
}

// Fabrics as catalog/networks has them, per port.
inline Network infiniband_ndr() { return network(50, 0.91, 1.3); }
inline Network infiniband_hdr() { return network(25, 0.9, 1.3); }
inline Network roce(double port_gb_per_s) { return network(port_gb_per_s, 0.9, 2); }

// `used` GPUs of each of `nodes` nodes.
inline Cluster cluster(const Gpu& gpu, const Node& node, int nodes, int used,
                       std::optional<Network> network = std::nullopt) {
  Cluster c;
  c.groups.push_back({gpu, node, nodes, used});
  c.network = std::move(network);
  return c;
}

inline Cluster hgx(const Gpu& gpu, int nodes = 1, int used = 8) {
  const bool hopper = gpu.compute_capability >= 9.0;
  return cluster(gpu, node(8, IntraLink::nvswitch, 2, 8, hopper ? 50 : 25), nodes, used,
                 network(hopper ? 50 : 25, 0.92, 2));
}

}  // namespace shardwise::link_machines
