// CollectiveModel: how long a collective takes, and by which algorithm.
//
// With n ranks on N nodes (p per node), S bytes, and per-rank bandwidths B (inside a node) and W
// (NICs of the group, per node), each algorithm takes  latency + bytes on the wire / bandwidth:
//
//   Ring       all-reduce 2(n-1)/n S, all-gather and reduce-scatter (n-1)/n S, over min(B, W)
//   Tree       all-reduce 2 S over B; between nodes S over W for two nodes, 2 S for more
//   NVLS       all-reduce (1 + 1/n) S over the switch: the reduction happens in it, so that a
//              rank sends S to be reduced and 1/n S to be spread; plus the filling of the pipeline
//   NVLSTree   NVLS inside, a tree between nodes
//   PAT        all-gather, reduce-scatter with one GPU per node: logarithmic in n
//   Exchange   all-to-all, send and receive: (p-1)/n S inside, (n-p)/n S between nodes
//
// and protocols LL, LL128, Simple trade latency for bandwidth. Latencies, ceilings and the rule of
// choice (the smallest predicted time) are those of NCCL's tuner, src/graph/tuning.cc:263-655; the
// bandwidths are those of the links (topology.hpp) instead of NCCL's own estimates.
//
// Sizes follow NCCL: all-gather and reduce-scatter by the full gathered size, all-to-all by what
// one rank holds. Bus bandwidth is that of nccl-tests (doc/PERFORMANCE.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "catalog/cluster.hpp"
#include "catalog/collective.hpp"
#include "catalog/link_calibration.hpp"
#include "catalog/units.hpp"
#include "simulator/network/topology.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {

inline constexpr std::size_t collective_count = collective_names.size();

enum class Algorithm : std::uint8_t { none, ring, tree, nvls, nvls_tree, pat, exchange };

struct CollectiveTime {
  Seconds time;
  Seconds latency;  // the part that does not depend on the size
  Algorithm algorithm = Algorithm::none;
  Protocol protocol = Protocol::simple;
  BytesPerSecond bus_bandwidth;
  double spread = 0;             // relative half width of an 80 % interval of `time`
  Trust trust = Trust::assumed;  // of the weakest link
  std::string_view algorithm_name() const;
  std::string_view protocol_name() const { return name(protocol); }
};

// A group's links, resolved: what the rows below compute with.
struct GroupLinks {
  int ranks = 1, nodes = 1, local = 1;
  BytesPerSecond ring, exchange;             // B, where local > 1
  BytesPerSecond network, network_exchange;  // W, where nodes > 1
  BytesPerSecond nic;
  int nics = 0;                   // of a node, in one communicator's rings
  PathKind kind = PathKind::loc;  // inside the node
  Seconds cpu_hop;                // added to a hop that crosses the CPU
  Seconds network_message{};      // that a message of a ring keeps its sender busy
  Seconds network_extra;          // over the fabric that NCCL's Net row stands for
  bool nvls = false, ll128 = false;
  double nvls_fraction = 0;
  double compute_capability = 0;
  const GpuGeneration* generation = nullptr;
  const LinkCalibration* calibration = nullptr;
  bool over_nvlink() const { return nodes == 1 && kind <= PathKind::nvl; }
};

struct CollectiveEstimate {
  Seconds latency, transfer;
};

// One way to run a collective. A new algorithm is a new row in collective_rows.cpp.
struct CollectiveRow {
  Algorithm algorithm;
  std::string_view name;
  Protocol protocol;
  bool (*applies)(Collective kind, const GroupLinks& links);
  CollectiveEstimate (*time)(Collective kind, Bytes size, Protocol protocol,
                             const GroupLinks& links);
};
inline constexpr std::size_t collective_row_count = 10;
extern const std::array<CollectiveRow, collective_row_count> collective_rows;

class CollectiveModel {
 public:
  // Both outlive the model.
  CollectiveModel(const Cluster& cluster, const LinkCalibration& links);

  // The fastest row. Nothing for one rank or no bytes.
  CollectiveTime time(Collective kind, Bytes size, const GroupShape& shape) const;

  // From now on every time is found once: for many plans, which have a small number of collectives
  // between them. Still safe to ask from several threads.
  void remember() { known_ = std::make_unique<Known>(); }

  // So many bytes, sent in as many calls as one likes, take no less: at the rate that the best row
  // reaches with calls of any size, without latencies.
  Seconds transfer_bound(Collective kind, double bytes, const GroupShape& shape) const;

  GroupLinks resolve(const GroupShape& shape) const;
  const Topology& topology() const { return topology_; }
  const LinkCalibration& calibration() const { return *links_; }

 private:
  struct Call {
    Collective kind;
    Bytes size;
    GroupShape shape;
    friend bool operator==(const Call&, const Call&) = default;
  };
  struct CallHash {
    std::size_t operator()(const Call& call) const;
  };
  struct Known {
    std::mutex mutex;
    std::unordered_map<Call, CollectiveTime, CallHash> times;
    std::unordered_map<Call, Seconds, CallHash> bounds;  // of the largest calls
  };
  CollectiveTime fastest(const Call& call) const;
  Seconds least_transfer(const Call& call) const;

  Topology topology_;
  const LinkCalibration* links_;
  std::unique_ptr<Known> known_;
};

}  // namespace shardwise
