#include "simulator/network/topology.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catalog/require.hpp"
#include "simulator/network/machine_flows.hpp"
#include "simulator/network/machine_graph.hpp"

namespace shardwise {
namespace {

bool reduces_in_switch(const Machine& machine, const LinkCalibration& links) {
  if (machine.node->intra_link != IntraLink::nvswitch) return false;
  return std::all_of(machine.cards.begin(), machine.cards.end(), [&](const Gpu* g) {
    return g->vendor == "nvidia" && g->nvlink.value > 0 &&
           links.generation(g->vendor, g->compute_capability).nvls_channels > 0;
  });
}

void keep_slower(LocalLinks& kept, const LocalLinks& other) {
  kept = {std::max(kept.kind, other.kind), std::max(kept.transport, other.transport),
          std::min(kept.ring, other.ring), std::min(kept.exchange, other.exchange)};
}

}  // namespace

Topology::Topology(const Cluster& cluster, const LinkCalibration& links)
    : gpus_per_node_(shardwise::gpus_per_node(cluster)),
      in_switch_reduction_(true),
      host_copy_(static_cast<std::size_t>(gpus_per_node_), unbounded_rate) {
  require(cluster.network.has_value() || gpus_per_node_ >= cluster.gpus(),
          "a cluster of several nodes has a network");
  const auto entries = static_cast<std::size_t>(gpus_per_node_ * gpus_per_node_);
  pairs_.assign(entries, {PathKind::loc, Transport::p2p, unbounded_rate});
  locals_.assign(entries, {PathKind::loc, Transport::p2p, unbounded_rate, unbounded_rate});
  if (cluster.network) {
    nic_ = gpu_to_nic_ = unbounded_rate;
    nics_ = std::numeric_limits<int>::max();
    oversubscription_ = std::max(1.0, cluster.network->oversubscription);
    nodes_per_leaf_ = std::max(1, links.network.nodes_per_leaf);
    scaling_ = cluster.network->scaling;
    latency_ = cluster.network->latency;
    message_ = cluster.network->message;
  }
  for (const Machine& machine : build_machines(cluster, links)) {
    add_links(machine, links);
    add_generation(machine, links);
    if (cluster.network) add_nics(machine, *cluster.network, links);
  }
}

// Where nodes differ, the slowest one holds the others up.
void Topology::add_links(const Machine& machine, const LinkCalibration& links) {
  MachineFlows flows(machine, links);
  const int n = gpus_per_node_;
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      if (a == b) continue;
      Path& pair = pairs_[static_cast<std::size_t>(a * n + b)];
      const BytesPerSecond rate = flows.rate_alone(a, b);
      if (rate < pair.bandwidth) pair = {flows.pair(a, b).kind, flows.pair(a, b).transport, rate};
    }
  for (int ranks = 2; ranks <= n; ++ranks)
    for (int stride = 1; ranks * stride <= n; ++stride)
      keep_slower(locals_[static_cast<std::size_t>((ranks - 1) * n + stride - 1)],
                  local_links(flows, ranks, stride, n));

  flows.clear();
  for (int i = 0; i < flows.gpus(); ++i) {
    flows.add_host_copy(i);
    BytesPerSecond& rate = host_copy_[static_cast<std::size_t>(std::min(i, n - 1))];
    rate = std::min(rate, flows.rate());
  }
}

void Topology::add_generation(const Machine& machine, const LinkCalibration& links) {
  in_switch_reduction_ = in_switch_reduction_ && reduces_in_switch(machine, links);
  several_chassis_ = several_chassis_ || machine.chassis > 1;
  for (const Gpu* g : machine.cards) {
    if (!generation_.name.empty() && g->compute_capability >= compute_capability_) continue;
    compute_capability_ = g->compute_capability;
    generation_ = links.generation(g->vendor, g->compute_capability);
  }
}

void Topology::add_nics(const Machine& machine, const Network& network,
                        const LinkCalibration& links) {
  const VertexId nic = machine.nics.front();
  nics_ = std::min(nics_, static_cast<int>(machine.nics.size()));
  communicator_nics_ =
      network.communicator_nics > 0 ? std::min(nics_, network.communicator_nics) : nics_;
  for (const EdgeId e : boost::make_iterator_range(boost::out_edges(nic, machine.graph)))
    nic_ = std::min(nic_, machine.graph[e].bandwidth);
  // NCCL lets a NIC read GPU memory up to PXB (NCCL_NET_GDR_LEVEL); else it goes through the host.
  const PathKind kind = path_kind(machine, Routes(machine, machine.gpus.front()).to(nic));
  const bool direct = network.gpu_direct && kind <= PathKind::pxb;
  staged_ = staged_ || !direct;
  for (const Gpu* card : machine.cards)
    gpu_to_nic_ = std::min(gpu_to_nic_, (direct ? 1.0 : links.network.staged) *
                                            pcie_bandwidth(*card, *machine.node, links.host));
}

Path Topology::path(int rank_a, int rank_b) const {
  const int n = gpus_per_node_;
  if (rank_a == rank_b) return {PathKind::loc, Transport::p2p, unbounded_rate};
  if (rank_a / n != rank_b / n) return {PathKind::net, Transport::net, std::min(nic_, gpu_to_nic_)};
  return pairs_[static_cast<std::size_t>(rank_a % n * n + rank_b % n)];
}

const LocalLinks& Topology::local(int ranks, int stride) const {
  require(ranks >= 2 && stride >= 1 && ranks * stride <= gpus_per_node_,
          "a local group fits into its node");
  return locals_[static_cast<std::size_t>((ranks - 1) * gpus_per_node_ + stride - 1)];
}

// Interpolated over the logarithm of the nodes; flat outside the table.
double Topology::scaling(int nodes) const {
  if (scaling_.empty()) return 1.0;
  if (nodes <= scaling_.front().first) return scaling_.front().second;
  for (std::size_t i = 1; i < scaling_.size(); ++i) {
    const auto& [n0, f0] = scaling_[i - 1];
    const auto& [n1, f1] = scaling_[i];
    if (nodes > n1) continue;
    return f0 + (f1 - f0) * std::log(static_cast<double>(nodes) / n0) /
                    std::log(static_cast<double>(n1) / n0);
  }
  return scaling_.back().second;
}

double Topology::fabric_slowdown(const GroupShape& shape, bool exchange) const {
  // The share of the traffic that leaves its leaf: of a ring, one neighbour in nodes_per_leaf; of
  // an exchange, all that is meant for other leaves. Nothing where the group fits below one leaf.
  double leaving = 0;
  const int extent = shape.nodes * shape.node_stride;
  if (extent > nodes_per_leaf_) {
    leaving = exchange ? 1.0 - static_cast<double>(nodes_per_leaf_) / extent
                       : static_cast<double>(shape.node_stride) / nodes_per_leaf_;
  }
  return std::max(1.0, oversubscription_ * std::min(1.0, leaving)) / scaling(shape.nodes);
}

BytesPerSecond Topology::network(const GroupShape& shape, bool exchange) const {
  require(shape.nodes > 1 && nics_ > 0, "a group that spans nodes has NICs");
  const BytesPerSecond share = (nics_ / fabric_slowdown(shape, exchange) / shape.sharing) * nic_;
  // An exchange goes from every GPU by its own NIC, a ring by those that its channels found.
  const int ways = exchange ? nics_ : communicator_nics_;
  const BytesPerSecond fed = std::min(shape.ranks_per_node, ways) * gpu_to_nic_;
  return std::min({share, fed, ways * nic_});
}

}  // namespace shardwise
