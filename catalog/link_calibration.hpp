// LinkCalibration: what links and NCCL's own constants are worth, apart from any one machine.
//
// Datasheets give line rates; this says which part of a line rate a kernel-driven copy reaches,
// what a hop costs, and how NCCL caps each algorithm and protocol.
// `catalog/profiles/nccl-2.30.json`
// is the default: NCCL 2.30.7's tuning tables as they stand in its source, and the few hardware
// rates that published micro-benchmarks add. collective_model.hpp has the equations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/provenance.hpp"
#include "catalog/result.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// How data and flags travel: 8 B data + 8 B flag, 120 B of 128 B, or plain chunks with a barrier.
enum class Protocol : std::uint8_t { ll, ll128, simple };
inline constexpr std::size_t protocol_count = 3;
inline constexpr std::array<std::string_view, protocol_count> protocol_names{"LL", "LL128",
                                                                             "Simple"};
constexpr std::string_view name(Protocol p) { return protocol_names[static_cast<std::size_t>(p)]; }

// The nearest common ancestor of two GPUs, nearest first (NCCL src/graph/topo.h path types).
enum class PathKind : std::uint8_t {
  loc,  // the same GPU
  nvl,  // NVLink, NVSwitch, Infinity Fabric
  pix,  // one PCIe switch
  pxb,  // several PCIe switches, not the CPU
  phb,  // the root complex of one CPU socket
  sys,  // the link between sockets
  net,  // a network
};
inline constexpr std::array<std::string_view, 7> path_kind_names{"LOC", "NVL", "PIX", "PXB",
                                                                 "PHB", "SYS", "NET"};
constexpr std::string_view name(PathKind k) { return path_kind_names[static_cast<std::size_t>(k)]; }

template <class T>
using PerProtocol = std::array<T, protocol_count>;  // LL, LL128, Simple
template <class T>
constexpr const T& at(const PerProtocol<T>& values, Protocol p) {
  return values[static_cast<std::size_t>(p)];
}

// Ceilings that depend on how many nodes a communicator spans: one, two, more.
using ByNodes = std::array<BytesPerSecond, 3>;

struct LinkEvidence {
  Trust trust = Trust::assumed;
  double spread = 0.3;  // relative half width of an 80 % interval of the time it predicts
  Provenance provenance;
};

// Latency of one hop over one kind of link.
struct HopLatency {
  PerProtocol<Seconds> tree{}, ring{};
  Seconds nvls, nvls_tree, pat;  // Simple only
};

// NCCL's tuning constants (src/graph/tuning.cc).
struct NcclConstants {
  PerProtocol<Seconds> tree_base{}, ring_base{};
  Seconds pat_base;
  Seconds pat_per_rank;
  HopLatency nvlink, pcie, net;
  Seconds host_overhead;  // per intra-node ring hop once the ring leaves the node; Simple: x3
  double plateau = 1;     // latency of multi-node Ring/Simple all-reduce, bulk sizes
  double plateau_before_ampere = 1;
  double ll_fraction = 1;  // of the bus bandwidth: half of an LL line is flags
  double ll128_fraction = 1;
  double tree_fraction = 1;
  double tree_ll_divisor = 1;
  double tree_ll128_one_node = 1;
  double tree_ll128_more_nodes = 1;
  double pat_fraction = 1;
  double pat_hop_divisor = 1;
  ByNodes ll_ceiling_between_nodes{};                 // whole communicator, Intel and other hosts
  PerProtocol<std::vector<double>> tree_size_factor;  // of sizes 64 B x 2^i
  PathKind p2p_level = PathKind::pxb;  // farthest path with direct access (NCCL_P2P_LEVEL)
  LinkEvidence evidence;
};

// What differs between generations of GPUs: a row serves compute capabilities from its own up to
// that of the vendor's next row. Rows are in ascending order within a vendor.
struct GpuGeneration {
  std::string name;                // "hopper"
  std::string vendor;              // Gpu::vendor
  double compute_capability = 0;   // the lowest that the row serves
  double link_payload = 1;         // rate of kernel-driven copies / line rate of all NVLinks
  BytesPerSecond channel;          // bandwidth of one channel where NCCL's graph search ends
  int nvls_channels = 0;           // 0: no in-switch reduction
  double nvls_fraction = 0;        // of the payload rate, inside one chassis
  double nvls_fraction_trays = 0;  // the same where the NVLink domain spans several chassis
  // What the tuner leaves out of collectives over NVLink inside one node: the part of the payload
  // rate that a ring's kernels keep up; what a rank's own part, which passes the same kernels from
  // its input to its output, takes of one step; and filling the channels.
  double ring_fraction = 1;
  double own_share = 0, own_share_of_all_reduce = 0;
  Seconds filling_least, filling_most;
  BytesPerSecond ll_ceiling;                                // whole communicator, one node
  ByNodes ring_ll128{}, tree_ll128{}, tree{}, nvls_tree{};  // per channel
  LinkEvidence evidence;
};

// PCIe, root complexes, sockets, host memory.
struct HostLinks {
  std::array<BytesPerSecond, 6> lane{};  // line rate of one lane, generations 1 to 6
  std::array<double, 6> payload{};       // large DMA copies / line rate, generations 1 to 6
  double chip_link_payload = 1;          // the same of Gpu::host_link, NVLink-C2C
  double p2p = 1;                        // NCCL's kernels over a direct path / DMA copy
  double p2p_between_sockets = 1;        // further factor where the path crosses sockets
  double shm = 1;                        // NCCL through a host-memory bounce buffer / DMA copy
  double shm_shared = 1;                 // the same of a link that several cards share, or shm
  double ll = 1;                         // LL over PCIe, instead of NcclConstants::ll_fraction
  Seconds cpu_hop;                       // added to a PCIe hop that crosses the CPU
  BytesPerSecond root_complex;           // of one socket, one direction
  BytesPerSecond socket_link;            // between two sockets, one direction
  double memory_fraction = 1;            // of the host's memory bandwidth that DMA can use
  // Of a node that does not say its own:
  BytesPerSecond memory_channel;          // one channel of its memory
  int memory_channels_per_socket = 1;     // of a server, which has several sockets
  int memory_channels_of_one_socket = 1;  // of any other box
  BytesPerSecond drive;                   // its NVMe drives together
  int gpus_per_pcie_switch = 1;
  LinkEvidence evidence;
};

// NICs and fabrics.
struct NetworkLinks {
  Seconds reference_latency;  // NIC to NIC, of the fabric on which NCCL's Net row was tuned
  double staged = 1;          // without GPUDirect: rate through host memory / PCIe DMA copy
  int nodes_per_leaf = 1;     // nodes that share a leaf switch
  LinkEvidence evidence;
};

// Grouped point-to-point operations: send/receive and all-to-all.
struct PointToPointLinks {
  double nvlink_fraction = 1;    // of the payload rate, one pair
  double exchange_fraction = 1;  // the same, everybody with everybody
  double own_share = 0;          // as GpuGeneration::own_share
  Seconds per_peer;              // cost of each further peer
  LinkEvidence evidence;
};

// Device memory of a communicator (allocator facts; communicator_memory.hpp has the rules).
struct CommunicatorBuffers {
  Bytes fixed;                  // of one communicator
  Bytes ring_per_channel;       // one send and one receive peer
  Bytes tree_pair_per_channel;  // more, where an all-reduce of two ranks may use a tree
  Bytes tree_per_channel;       // the same for more than two ranks
  Bytes peer_per_channel;       // one point-to-point peer, both directions
  Bytes nvls_chunk;             // a step of the in-switch buffer is this x 8
  Bytes shared_pool_chunk;      // point-to-point over the network: x 16 x channels
  int channel_limit = 1;
  int pcie_channels = 1;
  int point_to_point_channels_nvlink = 1, point_to_point_channels_pcie = 1;
  LinkEvidence evidence;
};

struct LinkCalibration {
  std::string name;
  Provenance provenance;
  NcclConstants nccl;
  std::vector<GpuGeneration> generations;  // never empty
  HostLinks host;
  NetworkLinks network;
  PointToPointLinks point_to_point;
  CommunicatorBuffers buffers;

  // The row of a GPU; vendors without one get the first row of all.
  const GpuGeneration& generation(std::string_view vendor, double compute_capability) const;
};

Result<LinkCalibration> load_link_calibration(const std::string& path);

}  // namespace shardwise
