#include "simulator/network/collective_model.hpp"

#include <algorithm>

#include "catalog/require.hpp"

namespace shardwise {

std::string_view CollectiveTime::algorithm_name() const {
  for (const CollectiveRow& row : collective_rows)
    if (row.algorithm == algorithm) return row.name;
  return "none";
}

CollectiveModel::CollectiveModel(const Cluster& cluster, const LinkCalibration& links)
    : topology_(cluster, links), links_(&links) {}

GroupLinks CollectiveModel::resolve(const GroupShape& shape) const {
  GroupLinks l;
  l.ranks = shape.ranks;
  l.nodes = shape.nodes;
  l.local = shape.ranks_per_node;
  l.generation = &topology_.generation();
  l.calibration = links_;
  l.compute_capability = topology_.compute_capability();
  l.cpu_hop = links_->host.cpu_hop;
  // How two GPUs of the machine reach each other says which protocols are on, even where a group
  // has one rank per node.
  if (topology_.gpus_per_node() > 1) l.kind = topology_.local(2, 1).kind;
  const bool nvlink = l.kind == PathKind::nvl;
  if (l.local > 1) {
    const LocalLinks& local = topology_.local(l.local, shape.local_stride);
    l.kind = local.kind;
    l.ring = local.ring;
    l.exchange = local.exchange;
  }
  if (l.nodes > 1) {
    l.network = topology_.network(shape, false);
    l.network_exchange = topology_.network(shape, true);
    l.nic = topology_.nic();
    l.nics = topology_.communicator_nics();
    l.network_message = topology_.network_message();
    l.network_extra =
        std::max(Seconds(0), topology_.network_latency() - links_->network.reference_latency);
  }
  l.ll128 = nvlink && l.kind <= PathKind::nvl && l.compute_capability >= 7.0;  // :514-536
  l.nvls = topology_.in_switch_reduction() && l.local > 1;
  l.nvls_fraction =
      topology_.several_chassis() ? l.generation->nvls_fraction_trays : l.generation->nvls_fraction;
  return l;
}

std::size_t CollectiveModel::CallHash::operator()(const Call& call) const {
  std::uint64_t hash = static_cast<std::uint64_t>(call.size.value);
  const GroupShape& s = call.shape;
  for (const int part : {static_cast<int>(call.kind), s.ranks, s.nodes, s.ranks_per_node,
                         s.local_stride, s.node_stride, s.sharing}) {
    // Sizes are multiples of large powers of two: what a product moves up is brought down again.
    hash = (hash ^ hash >> 29 ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15;
  }
  return hash ^ hash >> 32;
}

CollectiveTime CollectiveModel::time(Collective kind, Bytes size, const GroupShape& shape) const {
  require(size.value >= 0, "a collective moves a number of bytes that is not negative");
  if (shape.ranks <= 1 || size.value == 0) return {};
  const Call call{kind, size, shape};
  if (!known_) return fastest(call);
  {
    const std::lock_guard lock(known_->mutex);
    if (const auto it = known_->times.find(call); it != known_->times.end()) return it->second;
  }
  const CollectiveTime found = fastest(call);
  const std::lock_guard lock(known_->mutex);
  known_->times.emplace(call, found);
  return found;
}

namespace {

// Over NVLink a collective fills its channels first, for as long as what there is to send takes and
// no longer than they are deep; whatever the algorithm, so that none is preferred for it.
Seconds filling(Collective kind, Bytes size, const GroupLinks& l) {
  if (!l.over_nvlink() || l.local < 2 || kind == Collective::send_recv) return Seconds(0);
  const GpuGeneration& g = *l.generation;
  const Seconds sending = bus_factor(kind, l.ranks) * (size / l.ring);
  const Seconds least = kind == Collective::all_to_all ? Seconds(0) : g.filling_least;
  return std::min(least + sending, g.filling_most);
}

}  // namespace

CollectiveTime CollectiveModel::fastest(const Call& call) const {
  const auto& [kind, size, shape] = call;
  const GroupLinks links = resolve(shape);
  CollectiveTime best;
  bool found = false;
  for (const CollectiveRow& row : collective_rows) {
    if (!row.applies(kind, links)) continue;
    const CollectiveEstimate estimate = row.time(kind, size, row.protocol, links);
    const Seconds time = estimate.latency + estimate.transfer;
    if (found && time >= best.time) continue;
    best.time = time;
    best.latency = estimate.latency;
    best.algorithm = row.algorithm;
    best.protocol = row.protocol;
    found = true;
  }
  require(found, "some row runs every collective");
  best.time += filling(kind, size, links);
  best.bus_bandwidth = BytesPerSecond(bus_factor(kind, shape.ranks) *
                                      static_cast<double>(size.value) / best.time.value);
  const bool exchange = best.algorithm == Algorithm::exchange;
  const LinkEvidence& weakest = links.nodes > 1              ? links_->network.evidence
                                : links.kind > PathKind::nvl ? links_->host.evidence
                                : exchange                   ? links_->point_to_point.evidence
                                                             : links.generation->evidence;
  best.spread = weakest.spread;
  best.trust = weakest.trust;
  return best;
}

Seconds CollectiveModel::least_transfer(const Call& call) const {
  const GroupLinks links = resolve(call.shape);
  Seconds least(1e300);
  for (const CollectiveRow& row : collective_rows)
    if (row.applies(call.kind, links))
      least = std::min(least, row.time(call.kind, call.size, row.protocol, links).transfer);
  return least;
}

// Each row's rate is highest for the largest calls.
Seconds CollectiveModel::transfer_bound(Collective kind, double bytes,
                                        const GroupShape& shape) const {
  if (shape.ranks <= 1) return Seconds(0);
  constexpr Bytes large(std::int64_t{1} << 50);
  const double calls = bytes / static_cast<double>(large.value);
  const Call call{kind, large, shape};
  if (!known_) return calls * least_transfer(call);
  const std::lock_guard lock(known_->mutex);
  const auto [place, is_new] = known_->bounds.try_emplace(call);
  if (is_new) place->second = least_transfer(call);
  return calls * place->second;
}

}  // namespace shardwise
