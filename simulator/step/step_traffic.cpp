#include "simulator/step/step_traffic.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "simulator/network/machine_flows.hpp"
#include "simulator/network/machine_graph.hpp"

namespace shardwise {
namespace {

// Some GPUs of a node, and how many ranks of the stage each of them stands for.
struct NodePart {
  std::size_t instance = 0;  // of links
  int first_rank = 0;
  int ranks = 0;
};

// What one kind of communication of one stage does during a step.
struct Demand {
  int stage = 0;
  TrafficKind kind = TrafficKind::reduce;
  std::int64_t members = 1;
  Seconds time;                               // of all its messages, alone
  double rank_bytes = 0;                      // that one rank sends
  using Link = std::pair<std::size_t, int>;   // of an instance
  std::vector<std::pair<Link, double>> load;  // bytes, by link

  void add(const Link& link, double bytes) {
    const auto at = std::lower_bound(load.begin(), load.end(), link,
                                     [](const auto& l, const Link& key) { return l.first < key; });
    if (at != load.end() && at->first == link)
      at->second += bytes;
    else
      load.insert(at, {link, bytes});
  }
};

// Bytes that a rank passes to the next one (ring) or its port carries per direction.
double wire_bytes(const CollectiveUse& u) {
  const double size = static_cast<double>(u.size.value), n = u.shape.ranks;
  // Lines of LL are half flags, those of LL128 a sixteenth (collective_model.hpp).
  const double line = u.each.protocol == Protocol::ll      ? 2.0
                      : u.each.protocol == Protocol::ll128 ? 128.0 / 120.0
                                                           : 1.0;
  switch (u.each.algorithm) {
    case Algorithm::tree:
      return line * 2 * size;  // up and down
    case Algorithm::nvls:
      return u.collective == Collective::all_reduce ? (1 + 1 / n) * size : size;
    case Algorithm::nvls_tree:
      return (1 + 1 / static_cast<double>(u.shape.ranks_per_node)) * size;
    case Algorithm::exchange:
      return u.collective == Collective::send_recv ? size : size * (n - 1) / n;
    default:
      break;
  }
  if (u.collective == Collective::broadcast) return line * size;
  return line * (u.collective == Collective::all_reduce ? 2 : 1) * size * (n - 1) / n;
}

// What a node sends to others per group, each way (the rows of collective_rows.cpp).
double leaving_bytes(const CollectiveUse& u) {
  const bool tree = u.each.algorithm == Algorithm::tree || u.each.algorithm == Algorithm::nvls_tree;
  if (!tree) return wire_bytes(u);
  return (u.shape.nodes == 2 ? 1 : 2) * static_cast<double>(u.size.value);
}

std::optional<TrafficKind> kind_of(WorkKind work) {
  switch (work) {
    case WorkKind::tensor_comm:
      return TrafficKind::tensor;
    case WorkKind::context_comm:
      return TrafficKind::context;
    case WorkKind::expert_comm:
      return TrafficKind::expert;
    case WorkKind::gather_parameters:
      return TrafficKind::gather;
    case WorkKind::reduce_gradients:
      return TrafficKind::reduce;
    default:
      return std::nullopt;
  }
}

// What share of a link a demand takes at full speed.
struct LinkShare {
  Demand::Link link;
  std::size_t demand = 0;
  double share = 0;
};
using LinkShares = std::span<const LinkShare>;  // of one link, in the order of the demands

// Whether every demand takes as much of the second link, or more.
bool is_within(LinkShares a, LinkShares b) {
  auto at = b.begin();
  for (const LinkShare& s : a) {
    while (at != b.end() && at->demand < s.demand) ++at;
    if (at == b.end() || at->demand != s.demand || at->share < s.share) return false;
  }
  return true;
}

class TrafficBuilder {
 public:
  TrafficBuilder(const ParallelPlan& plan, const Cluster& cluster, const RankLayout& layout,
                 const CollectiveModel& collectives, const StepCosts& costs)
      : plan_(plan),
        cluster_(cluster),
        layout_(layout),
        topology_(collectives.topology()),
        costs_(costs),
        per_node_(topology_.gpus_per_node()),
        per_stage_(plan.gpus() / plan.pipeline),
        machines_(build_machines(cluster, collectives.calibration())) {
    for (const Machine& m : machines_) flows_.emplace_back(m, collectives.calibration());
  }

  StepTraffic build() {
    for (int stage = 0; stage < plan_.pipeline; ++stage) parts_.push_back(parts_of(stage));
    for (int stage = 0; stage < plan_.pipeline; ++stage) {
      add_collectives(stage);
      add_receives(stage);
      add_host(stage);
    }
    return finish();
  }

 private:
  const StageCosts& stage_costs(int stage) const {
    return costs_.stages[static_cast<std::size_t>(stage)];
  }
  std::size_t machine_of(int rank) const {
    if (machines_.size() == 1) return 0;
    return static_cast<std::size_t>(&cluster_.group_of(rank) - cluster_.groups.data());
  }
  int local(int rank) const { return rank % per_node_; }
  int node(int rank) const { return rank / per_node_; }

  // A node of its own has links of its own; nodes that play one stage only share theirs.
  std::size_t instance(int key_node, int key_stage, std::size_t machine) {
    const std::array<int, 2> key{key_node, key_stage};
    for (std::size_t i = 0; i < instances_.size(); ++i)
      if (instances_[i].key == key && instances_[i].machine == machine) return i;
    instances_.push_back({key, machine});
    return instances_.size() - 1;
  }

  std::vector<NodePart> parts_of(int stage) {
    std::vector<NodePart> parts;
    const int end = (stage + 1) * per_stage_;
    std::optional<std::size_t>
        whole_before;  // the machine of the last node that is all this stage's
    for (int rank = stage * per_stage_; rank < end;) {
      const int next = std::min(end, (node(rank) + 1) * per_node_);
      const std::size_t machine = machine_of(rank);
      const bool whole = next - rank == per_node_;
      if (whole && whole_before == machine) {
        rank = next;
        continue;
      }
      if (whole) whole_before = machine;
      const std::size_t i =
          whole ? instance(-1, stage, machine) : instance(node(rank), -1, machine);
      const bool known = std::any_of(parts.begin(), parts.end(),
                                     [&](const NodePart& p) { return p.instance == i; });
      if (!known) parts.push_back({i, rank, next - rank});
      rank = next;
    }
    return parts;
  }

  // The part of a stage that stands for the node of `rank`.
  const NodePart& part(int stage, int rank) const {
    const auto& parts = parts_[static_cast<std::size_t>(stage)];
    for (const NodePart& p : parts)
      if (node(p.first_rank) == node(rank)) return p;
    for (const NodePart& p : parts)
      if (p.ranks == per_node_ && instances_[p.instance].machine == machine_of(rank)) return p;
    return parts.front();
  }

  MachineFlows& flows(const NodePart& p) { return flows_[instances_[p.instance].machine]; }

  // Takes what has been added to the part's machine since clear().
  void collect(const NodePart& p, double times, Demand& d) {
    MachineFlows& f = flows(p);
    for (const int link : f.loaded()) d.add({p.instance, link}, times * f.load(link));
    f.clear();
  }

  void add_collectives(int stage) {
    std::array<Demand, traffic_kind_count> demands;
    for (const CollectiveUse& u : stage_costs(stage).collectives) {
      const auto kind = kind_of(u.work);
      if (!kind || u.beside || u.group == GroupKind::pipeline) continue;
      Demand& d = demands[static_cast<std::size_t>(*kind)];
      d.stage = stage;
      d.kind = *kind;
      d.time += u.per_step * u.each.time;
      d.rank_bytes += u.per_step * wire_bytes(u);
      for (const NodePart& p : parts_[static_cast<std::size_t>(stage)]) {
        for (int i = 0; i < p.ranks; ++i) add_rank(u, p, p.first_rank + i);
        collect(p, u.per_step, d);
      }
    }
    const int tensor_groups = plan_.data * plan_.context;
    for (Demand& d : demands) {
      if (d.time <= Seconds(0)) continue;
      d.members = d.kind == TrafficKind::tensor   ? tensor_groups
                  : d.kind == TrafficKind::expert ? 1
                                                  : plan_.tensor;
      demands_.push_back(std::move(d));
    }
  }

  // What `rank` sends, and receives from other nodes.
  void add_rank(const CollectiveUse& u, const NodePart& p, int rank) {
    const RankGroup g = layout_.group(u.group, rank);
    if (u.collective == Collective::all_to_all) return add_exchange(u, p, rank, g);
    const int next = g.first + ((rank - g.first) / g.stride + 1) % g.ranks * g.stride;
    if (node(next) == node(rank)) add_neighbour(u, p, rank, next, g);
    if (u.shape.nodes == 1) return;
    // Every member on this node takes its share of what leaves it.
    const int here = before(g, (node(rank) + 1) * per_node_) - before(g, node(rank) * per_node_);
    add_network(u, p, rank, leaving_bytes(u) / here, false);
  }

  // Members of a group whose ranks are below `rank`.
  static int before(const RankGroup& g, int rank) {
    return std::min(g.ranks, (std::max(0, rank - g.first) + g.stride - 1) / g.stride);
  }

  // To the next rank of the ring; in a mesh of direct links NCCL lays rings over all of them.
  void add_neighbour(const CollectiveUse& u, const NodePart& p, int rank, int next,
                     const RankGroup& g) {
    MachineFlows& f = flows(p);
    double direct = 0;
    const auto link_to = [&](int r) {
      return node(r) == node(rank) && r != rank ? f.direct(local(rank), local(r)).value : 0.0;
    };
    if (link_to(next) > 0)
      for (int k = 0, r = g.first; k < g.ranks; ++k, r += g.stride) direct += link_to(r);
    if (direct <= 0) return f.add_bytes(local(rank), local(next), wire_bytes(u));
    for (int k = 0, r = g.first; k < g.ranks; ++k, r += g.stride)
      if (link_to(r) > 0) f.add_bytes(local(rank), local(r), wire_bytes(u) * link_to(r) / direct);
  }

  void add_exchange(const CollectiveUse& u, const NodePart& p, int rank, const RankGroup& g) {
    const double each = static_cast<double>(u.size.value) / g.ranks;
    int away = 0;
    for (int k = 0, r = g.first; k < g.ranks; ++k, r += g.stride) {
      if (node(r) != node(rank))
        ++away;
      else if (r != rank)
        flows(p).add_bytes(local(rank), local(r), each);
    }
    if (away > 0) add_network(u, p, rank, away * each, true);
  }

  void add_network(const CollectiveUse& u, const NodePart& p, int rank, double bytes,
                   bool exchange) {
    const double slowed = bytes * topology_.fabric_slowdown(u.shape, exchange);
    for (const Direction d : {Direction::out, Direction::in})
      flows(p).add_network(local(rank), d, bytes, slowed, topology_.staged());
  }

  // What the stage receives over its two pipeline links.
  void add_receives(int stage) {
    if (plan_.pipeline == 1) return;
    const int before = (stage + plan_.pipeline - 1) % plan_.pipeline;
    const int after = (stage + 1) % plan_.pipeline;
    add_receive(stage, before, before, TrafficKind::receive_forward);
    add_receive(stage, after, stage, TrafficKind::receive_backward);
  }

  void add_receive(int stage, int from, int link, TrafficKind kind) {
    for (const CollectiveUse& u : stage_costs(link).collectives) {
      if (u.work != WorkKind::pipeline_send) continue;
      Demand d;
      d.stage = stage;
      d.kind = kind;
      d.members = per_stage_;
      // Half of the messages go each way.
      d.time = (u.per_step / 2) * u.each.time;
      d.rank_bytes = u.per_step / 2 * static_cast<double>(u.size.value);
      add_sides(u, stage, from, Direction::in, d);
      add_sides(u, from, stage, Direction::out, d);
      demands_.push_back(std::move(d));
    }
  }

  // The ranks of `stage` on one side of a link to `other`.
  void add_sides(const CollectiveUse& u, int stage, int other, Direction direction, Demand& d) {
    const double bytes = static_cast<double>(u.size.value);
    const double slowed =
        bytes * (u.shape.nodes > 1 ? topology_.fabric_slowdown(u.shape, false) : 1);
    for (const NodePart& p : parts_[static_cast<std::size_t>(stage)]) {
      for (int i = 0; i < p.ranks; ++i) {
        const int rank = p.first_rank + i, peer = rank + (other - stage) * per_stage_;
        if (node(peer) != node(rank))
          flows(p).add_network(local(rank), direction, bytes, slowed, topology_.staged());
        else if (direction == Direction::in)  // counted once
          flows(p).add_bytes(local(peer), local(rank), bytes);
      }
      collect(p, u.per_step / 2, d);
    }
  }

  void add_host(int stage) {
    const HostTraffic& h = stage_costs(stage).host_traffic;
    const auto add = [&](TrafficKind kind, Bytes bytes, BytesPerSecond rate, auto load) {
      if (bytes.value == 0) return;
      Demand d;
      d.stage = stage;
      d.kind = kind;
      d.members = per_stage_;
      d.time = bytes / rate;
      d.rank_bytes = static_cast<double>(bytes.value);
      for (const NodePart& p : parts_[static_cast<std::size_t>(stage)]) {
        for (int i = 0; i < p.ranks; ++i) load(flows(p), local(p.first_rank + i), d.rank_bytes);
        collect(p, 1, d);
      }
      demands_.push_back(std::move(d));
    };
    add(TrafficKind::copy_in, h.copied_in, h.copy_rate,
        [](MachineFlows& f, int gpu, double bytes) { f.add_host_copy(gpu, Direction::in, bytes); });
    add(TrafficKind::copy_out, h.copied_out, h.copy_rate,
        [](MachineFlows& f, int gpu, double bytes) {
          f.add_host_copy(gpu, Direction::out, bytes);
        });
    add(TrafficKind::host_optimizer, h.optimizer, h.optimizer_rate,
        [](MachineFlows& f, int, double bytes) {
          if (f.knows_memory()) f.add_memory_traffic(bytes);
        });
  }

  BytesPerSecond bandwidth(const Demand::Link& link) const {
    return flows_[instances_[link.first].machine].bandwidth(link.second);
  }

  // Of a link while the demand has full speed. What a kind does alone is the collective model's to
  // say, so it never takes more than the whole link.
  double share(const Demand& d, const Demand::Link& link, double bytes) const {
    return std::min(1.0, bytes / (d.time.value * bandwidth(link).value));
  }

  // Every link that can become short, but none that another one of its node always precedes.
  static std::vector<Demand::Link> links_that_count(std::vector<LinkShare> wanted) {
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const auto& a, const auto& b) { return a.link < b.link; });
    std::vector<LinkShares> kept;
    std::size_t node_begins = 0;  // among them: the one that is looked at
    for (auto first = wanted.begin(); first != wanted.end();) {
      double sum = 0;
      auto end = first;
      for (; end != wanted.end() && end->link == first->link; ++end) sum += end->share;
      const LinkShares link(first, end);
      first = end;
      if (sum <= 1 + 1e-9) continue;
      const bool other_node =
          !kept.empty() && kept.back().front().link.first != link.front().link.first;
      if (other_node) node_begins = kept.size();
      const auto node = kept.begin() + static_cast<std::ptrdiff_t>(node_begins);
      if (std::any_of(node, kept.end(), [&](LinkShares k) { return is_within(link, k); })) continue;
      kept.erase(std::remove_if(node, kept.end(), [&](LinkShares k) { return is_within(k, link); }),
                 kept.end());
      kept.push_back(link);
    }
    std::vector<Demand::Link> links;
    for (const LinkShares& link : kept) links.push_back(link.front().link);
    return links;
  }

  StepTraffic finish() {
    std::vector<LinkShare> wanted;
    for (std::size_t d = 0; d < demands_.size(); ++d)
      for (const auto& [link, bytes] : demands_[d].load)
        wanted.push_back({link, d, share(demands_[d], link, bytes)});
    StepTraffic traffic;
    traffic.stages.resize(static_cast<std::size_t>(plan_.pipeline));
    std::map<Demand::Link, LinkId> links;
    for (const Demand::Link& link : links_that_count(std::move(wanted)))
      links[link] = traffic.network.add_link(bandwidth(link));
    for (const Demand& d : demands_) {
      const BytesPerSecond ceiling(d.rank_bytes / d.time.value);
      std::vector<FlowLoad> loads;
      if (links.empty()) continue;
      for (const auto& [link, bytes] : d.load) {
        const auto found = links.find(link);
        if (found == links.end()) continue;
        const double each = share(d, link, bytes) / static_cast<double>(d.members);
        loads.push_back({found->second, each * (bandwidth(link) / ceiling)});
      }
      if (loads.empty()) continue;
      traffic.stages[static_cast<std::size_t>(d.stage)][static_cast<std::size_t>(d.kind)] =
          traffic.network.add_class(ceiling, loads);
    }
    return traffic;
  }

  struct Instance {
    std::array<int, 2> key;  // node or stage
    std::size_t machine;
  };

  const ParallelPlan& plan_;
  const Cluster& cluster_;
  const RankLayout& layout_;
  const Topology& topology_;
  const StepCosts& costs_;
  int per_node_, per_stage_;
  std::deque<Machine> machines_;
  std::deque<MachineFlows> flows_;  // by machine
  std::vector<Instance> instances_;
  std::vector<std::vector<NodePart>> parts_;  // by stage
  std::vector<Demand> demands_;
};

}  // namespace

StepTraffic step_traffic(const ParallelPlan& plan, const Cluster& cluster, const RankLayout& layout,
                         const CollectiveModel& collectives, const StepCosts& costs) {
  return TrafficBuilder(plan, cluster, layout, collectives, costs).build();
}

}  // namespace shardwise
