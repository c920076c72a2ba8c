#include "simulator/network/machine_graph.hpp"

#include <algorithm>
#include <array>

#include <boost/graph/dijkstra_shortest_paths.hpp>

#include "catalog/require.hpp"
#include "simulator/rank_layout.hpp"

namespace shardwise {
namespace {

// Costs keep a route on the nearest kind of link that leads there.
constexpr int nvlink_cost = 1, pcie_cost = 100, socket_cost = 1'000, network_cost = 10'000;

// NVLinks between the eight GPUs of a DGX-1V, six per GPU, as `nvidia-smi topo -m` prints them
// (microsoft/msccl-tools@508469770f tests/test_topologies.py, test_nvlink_only; a topology file of
// NCCL's in NVIDIA/nccl issue 671 has the first four GPUs alike).
constexpr std::array<std::array<int, 8>, 8> hybrid_cube_links{{{0, 1, 1, 2, 2, 0, 0, 0},
                                                               {1, 0, 2, 1, 0, 2, 0, 0},
                                                               {1, 2, 0, 2, 0, 0, 1, 0},
                                                               {2, 1, 2, 0, 0, 0, 0, 1},
                                                               {2, 0, 0, 0, 0, 1, 1, 2},
                                                               {0, 2, 0, 0, 1, 0, 2, 1},
                                                               {0, 0, 1, 0, 1, 2, 0, 2},
                                                               {0, 0, 0, 1, 2, 1, 2, 0}}};
constexpr double hybrid_cube_links_per_gpu = 6;

class Builder {
 public:
  Builder(Machine& machine, std::vector<const Gpu*> cards, const Node& node, int chassis,
          const std::optional<Network>& network, const LinkCalibration& links)
      : machine_(machine), node_(node), network_(network), links_(links) {
    machine_.cards = std::move(cards);
    machine_.node = &node;
    machine_.chassis = chassis;
  }

  void build() {
    const int sockets = std::max(1, node_.cpu_sockets) * machine_.chassis;
    add_gpus(sockets);
    add_sockets(sockets);
    add_pcie();
    add_chip_links();
    add_nvlink();
    if (network_) add_network();
  }

 private:
  int gpus() const { return static_cast<int>(machine_.cards.size()); }
  const Gpu& card(int local) const { return *machine_.cards[static_cast<std::size_t>(local)]; }
  VertexId gpu(int local) const { return machine_.gpus[static_cast<std::size_t>(local)]; }
  int socket(int local) const { return machine_.socket_of_gpu[static_cast<std::size_t>(local)]; }

  VertexId add_vertex(VertexKind kind, int index) {
    return boost::add_vertex(MachineVertex{kind, index}, machine_.graph);
  }
  void connect(VertexId a, VertexId b, EdgeKind kind, BytesPerSecond bandwidth, int cost) {
    boost::add_edge(a, b, MachineEdge{kind, bandwidth, cost, edges_++}, machine_.graph);
    boost::add_edge(b, a, MachineEdge{kind, bandwidth, cost, edges_++}, machine_.graph);
  }

  void add_gpus(int sockets) {
    for (int i = 0; i < gpus(); ++i) {
      machine_.gpus.push_back(add_vertex(VertexKind::gpu, i));
      machine_.socket_of_gpu.push_back(i * sockets / gpus());
    }
  }

  void add_sockets(int sockets) {
    const int per_chassis = sockets / machine_.chassis;
    for (int s = 0; s < sockets; ++s) {
      roots_.push_back(add_vertex(VertexKind::root_complex, s));
      machine_.memories.push_back(add_vertex(VertexKind::host_memory, s));
      // What a byte costs the memory itself (once copied, twice bounced) is counted apart:
      // MachineFlows::memory_link.
      BytesPerSecond bandwidth = links_.host.root_complex;
      if (node_.host_memory_bandwidth) {
        const double share = links_.host.memory_fraction / per_chassis;
        bandwidth = std::min(bandwidth, share * *node_.host_memory_bandwidth);
      }
      connect(roots_.back(), machine_.memories.back(), EdgeKind::memory, bandwidth, pcie_cost);
    }
    for (int a = 0; a < sockets; ++a)
      for (int b = a + 1; b < sockets; ++b)
        if (a / per_chassis == b / per_chassis)
          connect(root(a), root(b), EdgeKind::socket, links_.host.socket_link, socket_cost);
  }

  // Where the GPUs of a socket hang: on its root complex, or on switches below it.
  void add_pcie() {
    const bool switches = node_.intra_link != IntraLink::pcie_host && !bridged();
    const int per_switch = gpus_per_switch();
    int in_switch = 0, last_socket = -1;
    for (int i = 0; i < gpus(); ++i) {
      const BytesPerSecond slot = pcie_bandwidth(card(i), node_, links_.host);
      const int s = socket(i);
      if (switches && (s != last_socket || in_switch == per_switch)) {
        switches_.push_back(
            add_vertex(VertexKind::pcie_switch, static_cast<int>(switches_.size())));
        connect(switches_.back(), root(s), EdgeKind::pcie, slot, pcie_cost);
        in_switch = 0;
      }
      connect(gpu(i), switches ? switches_.back() : root(s), EdgeKind::pcie, slot, pcie_cost);
      last_socket = s;
      ++in_switch;
    }
  }

  // NVLink-C2C leads from a GPU to the memory of its CPU, past any root complex.
  void add_chip_links() {
    for (int i = 0; i < gpus(); ++i) {
      if (!card(i).host_link) continue;
      const auto memory = machine_.memories[static_cast<std::size_t>(socket(i))];
      connect(gpu(i), memory, EdgeKind::memory, links_.host.chip_link_payload * *card(i).host_link,
              pcie_cost);
    }
  }

  // HGX boards pair each GPU with a NIC below one switch; PCIe servers hang more on a switch.
  int gpus_per_switch() const {
    if (node_.intra_link == IntraLink::pcie_switch) return links_.host.gpus_per_pcie_switch;
    const int nics = std::max(1, nic_count());
    return std::max(1, gpus() / nics);
  }

  void add_nvlink() {
    for (int i = 0; i < gpus(); ++i)
      if (nvlink(i).value <= 0) return;
    switch (node_.intra_link) {
      case IntraLink::nvswitch:
        if (card(0).vendor == "nvidia")
          add_nvswitch();
        else
          add_mesh();  // Infinity Fabric, Gaudi: direct links between all pairs
        break;
      case IntraLink::nvlink_mesh:
        if (card(0).vendor == "nvidia" && node_.gpus == 8)
          add_hybrid_cube();
        else
          add_mesh();
        break;
      case IntraLink::nvlink_pairs:
        for (int i = 0; i + 1 < gpus(); i += 2)
          connect(gpu(i), gpu(i + 1), EdgeKind::nvlink, std::min(nvlink(i), nvlink(i + 1)),
                  nvlink_cost);
        break;
      case IntraLink::nvlink_fours:
        for (int a = 0; a < gpus(); ++a)
          for (int b = a + 1; b < gpus() && b / 4 == a / 4; ++b)
            connect(gpu(a), gpu(b), EdgeKind::nvlink, (1.0 / 3) * std::min(nvlink(a), nvlink(b)),
                    nvlink_cost);
        break;
      case IntraLink::pcie_switch:
      case IntraLink::pcie_host:
        break;
    }
  }

  bool bridged() const {
    return node_.intra_link == IntraLink::nvlink_pairs ||
           node_.intra_link == IntraLink::nvlink_fours;
  }

  BytesPerSecond nvlink(int local) const {
    const Gpu& g = card(local);
    const double payload = links_.generation(g.vendor, g.compute_capability).link_payload;
    return payload * node_.nvlink_override.value_or(g.nvlink);
  }

  void add_nvswitch() {
    const VertexId hub = add_vertex(VertexKind::nvswitch, 0);
    for (int i = 0; i < gpus(); ++i) connect(gpu(i), hub, EdgeKind::nvlink, nvlink(i), nvlink_cost);
  }
  void add_mesh() {
    const double others = std::max(1, std::max(node_.gpus, gpus()) - 1);
    for (int a = 0; a < gpus(); ++a)
      for (int b = a + 1; b < gpus(); ++b)
        connect(gpu(a), gpu(b), EdgeKind::nvlink, (1.0 / others) * std::min(nvlink(a), nvlink(b)),
                nvlink_cost);
  }
  void add_hybrid_cube() {
    for (int a = 0; a < gpus(); ++a)
      for (int b = a + 1; b < gpus(); ++b) {
        const int links =
            hybrid_cube_links[static_cast<std::size_t>(a % 8)][static_cast<std::size_t>(b % 8)];
        if (links > 0)
          connect(gpu(a), gpu(b), EdgeKind::nvlink, (links / hybrid_cube_links_per_gpu) * nvlink(a),
                  nvlink_cost);
      }
  }

  int nic_count() const {
    if (!network_) return 0;
    return std::max(1, node_.nic_count) * machine_.chassis;
  }

  void add_network() {
    BytesPerSecond line = network_->port_bandwidth;
    if (node_.nic_count > 0 && node_.nic_bandwidth.value > 0)
      line = std::min(line, node_.nic_bandwidth);
    BytesPerSecond nic = (network_->efficiency * network_->share) * line;
    if (network_->stream_bandwidth.value > 0) nic = std::min(nic, network_->stream_bandwidth);
    const int nics = nic_count();
    const VertexId leaf = add_vertex(VertexKind::leaf, 0);
    machine_.spine = add_vertex(VertexKind::spine, 0);
    connect(leaf, *machine_.spine, EdgeKind::network,
            (nics / std::max(1.0, network_->oversubscription)) * nic, network_cost);
    for (int i = 0; i < nics; ++i) {
      machine_.nics.push_back(add_vertex(VertexKind::nic, i));
      const auto slots = switches_.empty() ? roots_.size() : switches_.size();
      const std::size_t slot = static_cast<std::size_t>(i) * slots / static_cast<std::size_t>(nics);
      connect(machine_.nics.back(), switches_.empty() ? roots_[slot] : switches_[slot],
              EdgeKind::network, nic, network_cost);
      connect(machine_.nics.back(), leaf, EdgeKind::network, nic, network_cost);
    }
  }

  VertexId root(int socket) const { return roots_[static_cast<std::size_t>(socket)]; }

  Machine& machine_;
  const Node& node_;
  const std::optional<Network>& network_;
  const LinkCalibration& links_;
  std::vector<VertexId> roots_, switches_;
  int edges_ = 0;
};

}  // namespace

std::deque<Machine> build_machines(const Cluster& cluster, const LinkCalibration& links) {
  require(!cluster.groups.empty(), "a cluster has at least one group of nodes");
  std::deque<Machine> machines;
  std::vector<const Gpu*> cards;
  for (const NodeGroup& group : cluster.groups) {
    const int chassis = cluster.mixed_in_one_node ? 1 : machines_per_nvlink_domain(group);
    for (int i = 0; i < group.gpus_per_node * chassis; ++i) cards.push_back(&group.gpu);
    const bool box_is_complete = !cluster.mixed_in_one_node || &group == &cluster.groups.back();
    if (!box_is_complete) continue;
    const Node& node = cluster.mixed_in_one_node ? cluster.groups.front().node : group.node;
    machines.emplace_back();
    Builder(machines.back(), cards, node, chassis, cluster.network, links).build();
    cards.clear();
  }
  return machines;
}

Routes::Routes(const Machine& machine, VertexId from)
    : machine_(&machine), from_(from), before_(boost::num_vertices(machine.graph)) {
  boost::dijkstra_shortest_paths(machine.graph, from,
                                 boost::weight_map(boost::get(&MachineEdge::cost, machine.graph))
                                     .predecessor_map(before_.data()));
}

std::vector<EdgeId> Routes::to(VertexId to) const {
  std::vector<EdgeId> path;
  path.reserve(8);  // more than between two GPUs of any box
  for (VertexId at = to; at != from_; at = before_[at]) {
    require(before_[at] != at, "every vertex of a machine can be reached");
    path.push_back(boost::edge(before_[at], at, machine_->graph).first);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

BytesPerSecond pcie_bandwidth(const Gpu& gpu, const Node& node, const HostLinks& links) {
  const int generation =
      std::clamp(std::min(gpu.pcie_generation, node.pcie_generation.value_or(gpu.pcie_generation)),
                 1, static_cast<int>(links.lane.size()));
  const int lanes = std::max(1, std::min(gpu.pcie_lanes, node.pcie_lanes_per_gpu.value_or(16)));
  const auto row = static_cast<std::size_t>(generation - 1);
  return lanes * links.payload[row] * links.lane[row];
}

}  // namespace shardwise
