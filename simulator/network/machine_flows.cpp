#include "simulator/network/machine_flows.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace shardwise {
namespace {

// `ranks` GPUs that lie `stride` apart, and all their siblings among the first `gpus`.
struct Siblings {
  int ranks, stride, gpus;
  int groups() const { return gpus / (ranks * stride) * stride; }
  int member(int group, int k) const {
    return group / stride * (ranks * stride) + group % stride + k * stride;
  }
};

template <class Visit>
void for_each_neighbour(const Siblings& s, Visit visit) {
  for (int g = 0; g < s.groups(); ++g)
    for (int k = 0; k < s.ranks; ++k) visit(s.member(g, k), s.member(g, (k + 1) % s.ranks));
}

// NVLinks straight to the other members: NCCL lays rings over all of them at once.
std::optional<BytesPerSecond> mesh_rate(const MachineFlows& flows, const Siblings& s) {
  BytesPerSecond least = unbounded_rate;
  for (int g = 0; g < s.groups(); ++g)
    for (int a = 0; a < s.ranks; ++a) {
      BytesPerSecond sum(0);
      for (int b = 0; b < s.ranks; ++b)
        if (a != b) sum += flows.direct(s.member(g, a), s.member(g, b));
      const int next = s.member(g, (a + 1) % s.ranks);
      if (flows.pair(s.member(g, a), next).kind != PathKind::nvl || sum.value <= 0)
        return std::nullopt;
      least = std::min(least, sum);
    }
  return least;
}

}  // namespace

PathKind path_kind(const Machine& machine, const std::vector<EdgeId>& path) {
  const MachineGraph& g = machine.graph;
  int switches = 0, roots = 0;
  bool nvlink = false;
  for (const EdgeId e : path) {
    if (g[e].kind == EdgeKind::socket) return PathKind::sys;
    nvlink = nvlink || g[e].kind == EdgeKind::nvlink;
    const VertexKind reached = g[boost::target(e, g)].kind;
    switches += reached == VertexKind::pcie_switch ? 1 : 0;
    roots += reached == VertexKind::root_complex ? 1 : 0;
  }
  if (roots > 0) return PathKind::phb;
  if (nvlink) return PathKind::nvl;
  if (path.empty()) return PathKind::loc;
  return switches > 1 ? PathKind::pxb : PathKind::pix;
}

MachineFlows::MachineFlows(const Machine& machine, const LinkCalibration& links)
    : machine_(machine),
      links_(links),
      gpus_(static_cast<int>(machine.gpus.size())),
      edges_(static_cast<int>(boost::num_edges(machine.graph))),
      bandwidth_(boost::num_edges(machine.graph) + 2 + machine.memories.size(), unbounded_rate),
      flows_(bandwidth_.size()) {
  for (const EdgeId e : boost::make_iterator_range(boost::edges(machine.graph))) {
    const MachineEdge& edge = machine.graph[e];
    bandwidth_[static_cast<std::size_t>(edge.index)] = edge.bandwidth;
    if (machine.graph[boost::target(e, machine.graph)].kind == VertexKind::nvswitch)
      through_switch_ = std::min(through_switch_.value_or(unbounded_rate), edge.bandwidth);
  }
  for (const VertexId nic : machine.nics)
    for (const EdgeId e : boost::make_iterator_range(boost::out_edges(nic, machine.graph))) {
      if (machine.graph[boost::target(e, machine.graph)].kind != VertexKind::leaf) continue;
      const double nics = static_cast<double>(machine.nics.size());
      for (const Direction d : {Direction::out, Direction::in})
        bandwidth_[static_cast<std::size_t>(nics_link(d))] = nics * machine.graph[e].bandwidth;
    }
  if (knows_memory()) {
    const double sockets = static_cast<double>(machine.memories.size()) / machine.chassis;
    for (std::size_t s = 0; s < machine.memories.size(); ++s)
      bandwidth_[static_cast<std::size_t>(memory_link(static_cast<int>(s)))] =
          (links.host.memory_fraction / sockets) * *machine.node->host_memory_bandwidth;
  }
  for (const VertexId gpu : machine.gpus) from_gpu_.emplace_back(machine, gpu);
  for (const VertexId memory : machine.memories) from_memory_.emplace_back(machine, memory);
  for (int a = 0; a < gpus_; ++a)
    for (int b = 0; b < gpus_; ++b) pairs_.push_back(a == b ? PairRoute{} : pair_route(a, b));
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    const auto at = static_cast<std::size_t>(gpu);
    const auto socket = static_cast<std::size_t>(machine.socket_of_gpu[at]);
    to_memory_.push_back(way(gpu, machine.memories[socket]));
    const std::size_t nics = machine.nics.size();
    if (nics > 0)
      to_nic_.push_back(way(gpu, machine.nics[at * nics / static_cast<std::size_t>(gpus_)]));
  }
}

PairRoute MachineFlows::pair_route(int a, int b) const {
  const auto from = static_cast<std::size_t>(a), to = static_cast<std::size_t>(b);
  const std::vector<EdgeId> straight = from_gpu_[from].to(machine_.gpus[to]);
  PairRoute result;
  result.kind = path_kind(machine_, straight);
  result.transport = transport(a, b, result.kind);
  const HostLinks& host = links_.host;
  if (result.transport == Transport::p2p) {
    double weight = 1.0;
    if (result.kind > PathKind::nvl) weight /= host.p2p;
    if (result.kind == PathKind::sys) weight /= host.p2p_between_sockets;
    append(result, straight, weight, weight);
    return result;
  }
  // The bounce buffer lies at the receiver (src/transport/shm.cc:56).
  const auto socket = static_cast<std::size_t>(machine_.socket_of_gpu[to]);
  const double own = 1.0 / host.shm, shared = 1.0 / std::max(host.shm, host.shm_shared);
  append(result, from_gpu_[from].to(machine_.memories[socket]), own, shared);
  append(result, from_memory_[socket].to(machine_.gpus[to]), own, shared);
  return result;
}

Transport MachineFlows::transport(int a, int b, PathKind kind) const {
  if (kind <= PathKind::nvl) return Transport::p2p;
  const auto allowed = [this](int i) {
    return machine_.cards[static_cast<std::size_t>(i)]->peer_over_pcie == PeerAccess::yes;
  };
  const bool near = kind <= links_.nccl.p2p_level;
  return near && allowed(a) && allowed(b) ? Transport::p2p : Transport::shm;
}

void MachineFlows::append(PairRoute& route, const std::vector<EdgeId>& path, double slot_weight,
                          double shared_weight) const {
  route.loads.reserve(route.loads.size() + path.size());
  const MachineGraph& g = machine_.graph;
  for (const EdgeId e : path) {
    const bool slot = g[boost::source(e, g)].kind == VertexKind::gpu ||
                      g[boost::target(e, g)].kind == VertexKind::gpu;
    const double weight = slot ? slot_weight : shared_weight;
    route.loads.push_back({g[e].index, g[e].kind == EdgeKind::pcie ? weight : 1.0});
  }
}

BytesPerSecond MachineFlows::direct(int a, int b) const {
  const PairRoute& p = pair(a, b);
  if (p.kind != PathKind::nvl || p.loads.size() != 1) return BytesPerSecond(0);
  return bandwidth_[static_cast<std::size_t>(p.loads.front().edge)];
}

void MachineFlows::clear() {
  for (const int e : loaded_) flows_[static_cast<std::size_t>(e)] = 0.0;
  loaded_.clear();
}

void MachineFlows::add_load(int link, double amount) {
  double& flow = flows_[static_cast<std::size_t>(link)];
  if (flow <= 0) loaded_.push_back(link);
  flow += amount;
}

void MachineFlows::add(int a, int b, double amount) {
  for (const PairRoute::Load& l : pair(a, b).loads) add_load(l.edge, l.weight * amount);
  add_bounce(a, b, amount);
}

void MachineFlows::add_bytes(int a, int b, double amount) {
  for (const PairRoute::Load& l : pair(a, b).loads) add_load(l.edge, amount);
  add_bounce(a, b, amount);
}

// What goes through host memory is written once and read once.
void MachineFlows::add_bounce(int a, int b, double amount) {
  if (pair(a, b).transport != Transport::shm) return;
  add_load(memory_link(machine_.socket_of_gpu[static_cast<std::size_t>(b)]), 2 * amount);
}

MachineFlows::Way MachineFlows::way(int gpu, VertexId to) const {
  const MachineGraph& g = machine_.graph;
  Way way;
  for (const EdgeId e : from_gpu_[static_cast<std::size_t>(gpu)].to(to)) {
    if (g[e].kind == EdgeKind::network) continue;
    way.out.push_back(g[e].index);
    way.in.push_back(g[boost::edge(boost::target(e, g), boost::source(e, g), g).first].index);
  }
  return way;
}

void MachineFlows::add_way(const Way& way, Direction direction, double amount) {
  for (const int edge : direction == Direction::out ? way.out : way.in) add_load(edge, amount);
}

void MachineFlows::add_host_copy(int gpu, Direction direction, double amount) {
  const auto at = static_cast<std::size_t>(gpu);
  add_way(to_memory_[at], direction, amount);
  add_load(memory_link(machine_.socket_of_gpu[at]), amount);
}

void MachineFlows::add_network(int gpu, Direction direction, double amount, double nic_amount,
                               bool staged) {
  const auto at = static_cast<std::size_t>(gpu);
  if (staged) {
    add_way(to_memory_[at], direction, amount);
    add_load(memory_link(machine_.socket_of_gpu[at]), 2 * amount);
  } else {
    add_way(to_nic_[at], direction, amount);
  }
  add_load(nics_link(direction), nic_amount);
}

void MachineFlows::add_memory_traffic(double amount) {
  const int sockets = static_cast<int>(machine_.memories.size());
  for (int s = 0; s < sockets; ++s) add_load(memory_link(s), amount / sockets);
}

BytesPerSecond MachineFlows::rate() const {
  BytesPerSecond least = unbounded_rate;
  for (const int e : loaded_) {
    const auto edge = static_cast<std::size_t>(e);
    least = std::min(least, (1.0 / flows_[edge]) * bandwidth_[edge]);
  }
  return least;
}

// A route may pass an edge twice (up to the root complex and down again): sum first.
BytesPerSecond MachineFlows::rate_alone(int a, int b) const {
  BytesPerSecond least = unbounded_rate;
  const auto& loads = pair(a, b).loads;
  for (const PairRoute::Load& l : loads) {
    double weight = 0;
    for (const PairRoute::Load& other : loads) weight += other.edge == l.edge ? other.weight : 0;
    least = std::min(least, (1.0 / weight) * bandwidth_[static_cast<std::size_t>(l.edge)]);
  }
  return least;
}

LocalLinks local_links(MachineFlows& flows, int ranks, int stride, int gpus) {
  const Siblings s{ranks, stride, gpus};
  LocalLinks result;
  for_each_neighbour(s, [&](int a, int b) {
    result.kind = std::max(result.kind, flows.pair(a, b).kind);
    result.transport = std::max(result.transport, flows.pair(a, b).transport);
  });
  // Neither a switch nor a mesh is shared with the siblings.
  auto own = flows.through_switch();
  if (!own) own = mesh_rate(flows, s);
  if (own) {
    result.ring = result.exchange = *own;
    return result;
  }
  flows.clear();
  for_each_neighbour(s, [&](int a, int b) { flows.add(a, b, 1.0); });
  result.ring = flows.rate();
  flows.clear();
  for (int g = 0; g < s.groups(); ++g)
    for (int a = 0; a < ranks; ++a)
      for (int b = 0; b < ranks; ++b)
        if (a != b) flows.add(s.member(g, a), s.member(g, b), 1.0 / (ranks - 1));
  result.exchange = flows.rate();
  return result;
}

}  // namespace shardwise
