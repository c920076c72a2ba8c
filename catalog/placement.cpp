#include "catalog/placement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/spoken_cluster.hpp"

namespace shardwise {
namespace {

Problem request(const char* where, std::string what) {
  return {ProblemKind::request, where, std::move(what)};
}

const Node* node_by_id(const Catalog& catalog, const std::string& id) {
  for (const Node& node : catalog.nodes)
    if (node.id == id) return &node;
  return nullptr;
}

const Gpu* gpu_by_id(const Catalog& catalog, const std::string& id) {
  for (const Gpu& gpu : catalog.gpus)
    if (gpu.id == id) return &gpu;
  return nullptr;
}

// The smallest usual box of a market that holds `cards`; the largest one where none does.
const Node* usual_box(const Catalog& catalog, Market market, int cards) {
  const Node* smallest = nullptr;
  const Node* largest = nullptr;
  for (const Node& node : catalog.nodes) {
    const auto& markets = node.default_for;
    if (std::find(markets.begin(), markets.end(), market) == markets.end()) continue;
    if (node.gpus >= cards && (!smallest || node.gpus < smallest->gpus)) smallest = &node;
    if (!largest || node.gpus > largest->gpus) largest = &node;
  }
  return smallest ? smallest : largest;
}

// The node a card is sold in; a larger catalogued node of the same card where that is too small.
const Node* home_of(const Catalog& catalog, const Gpu& gpu, int cards) {
  const Node* home = node_by_id(catalog, gpu.default_node);
  if (!home) return usual_box(catalog, gpu.market, cards);
  if (home->gpus >= cards) return home;
  const Node* larger = nullptr;
  for (const Node& node : catalog.nodes) {
    if (node.gpu != gpu.id || node.trays > 0 || node.gpus < cards) continue;
    if (!larger || node.gpus < larger->gpus) larger = &node;
  }
  return larger ? larger : home;
}

NodeGroup group_of(const Gpu& gpu, const Node& node, int nodes, int per_node) {
  NodeGroup group{gpu, node, nodes, per_node};
  group.node.gpu = gpu.id;
  return group;
}

// `cards` over equal boxes where they divide, else full boxes and a rest.
std::vector<NodeGroup> spread(const Gpu& gpu, const Node& node, int cards, int box) {
  const int nodes = (cards + box - 1) / box;
  if (cards % nodes == 0) return {group_of(gpu, node, nodes, cards / nodes)};
  return {group_of(gpu, node, cards / box, box), group_of(gpu, node, 1, cards % box)};
}

Result<std::vector<NodeGroup>> said_per_node(const Catalog& catalog, const Gpu& gpu, int nodes,
                                             int per_node) {
  const Node* node = home_of(catalog, gpu, per_node);
  if (!node || node->gpus < per_node)
    return request("--gpus", "no catalogued node holds " + std::to_string(per_node) + " of " +
                                 gpu.id + "; the largest holds " +
                                 std::to_string(node ? node->gpus : 0));
  return std::vector<NodeGroup>{group_of(gpu, *node, nodes, per_node)};
}

BytesPerSecond outward(const NodeGroup& group) {
  return group.node.nic_count * group.node.nic_bandwidth;
}

// The network that the options name, or that of the group with the least bandwidth outward.
Result<Network> network_for(const Catalog& catalog, const std::vector<NodeGroup>& groups,
                            const ClusterOptions& options) {
  if (options.network) {
    const auto found = find_network(catalog, *options.network);
    if (!found) {
      Problems problems = found.error();
      for (Problem& p : problems) p.where = "--network";
      return problems;
    }
    return **found;
  }
  const auto slowest = std::min_element(
      groups.begin(), groups.end(),
      [](const NodeGroup& a, const NodeGroup& b) { return outward(a) < outward(b); });
  const auto found = find_network(catalog, slowest->node.network);
  if (!found)
    return request("--network", slowest->node.id + " has no network; name one with --network");
  return **found;
}

}  // namespace

Result<std::vector<NodeGroup>> place_nodes(const Catalog& catalog, const Node& node, int count,
                                           const ClusterOptions& options) {
  const Node* box = node.tray.empty() ? &node : node_by_id(catalog, node.tray);
  const int boxes = count * std::max(1, node.trays);
  const Gpu* gpu = box ? gpu_by_id(catalog, box->gpu) : nullptr;
  if (!gpu)
    return request("--gpus", node.id + " is a box for any card; name the cards, as in " +
                                 std::to_string(node.gpus) + "xRTX-4090");
  const int per_node = options.gpus_per_node.value_or(box->gpus);
  if (per_node < 1 || per_node > box->gpus)
    return request("--gpus-per-node", "expected 1 to " + std::to_string(box->gpus) + " for " +
                                          box->id + ", found " + std::to_string(per_node));
  return std::vector<NodeGroup>{group_of(*gpu, *box, boxes, per_node)};
}

Result<std::vector<NodeGroup>> place_cards(const Catalog& catalog, const Gpu& gpu,
                                           const CardCount& count, const ClusterOptions& options) {
  if (count.nodes && count.said) return said_per_node(catalog, gpu, *count.nodes, count.cards);
  if (options.gpus_per_node) {
    const int per_node = *options.gpus_per_node;
    if (per_node < 1 || per_node > max_cluster_gpus)
      return request("--gpus-per-node", "expected 1 to 1000000, found " + std::to_string(per_node));
    if (count.nodes) return said_per_node(catalog, gpu, *count.nodes, per_node);
    if (count.cards % per_node != 0)
      return request("--gpus-per-node", std::to_string(count.cards) + " GPUs do not divide into " +
                                            "nodes of " + std::to_string(per_node));
    return said_per_node(catalog, gpu, count.cards / per_node, per_node);
  }
  const Node* node = home_of(catalog, gpu, std::min(count.cards, largest_usual_box));
  if (!node) return request("--gpus", "no catalogued box holds " + gpu.id);
  if (count.nodes)  // "2 nodes of H100": full ones
    return std::vector<NodeGroup>{group_of(gpu, *node, *count.nodes, node->gpus)};
  return spread(gpu, *node, count.cards, node->gpus);
}

void share_one_box(const Catalog& catalog, std::vector<NodeGroup>& groups) {
  int cards = 0;
  Market market = Market::consumer;
  for (const NodeGroup& g : groups) {
    cards += g.gpus_per_node;
    market = std::max(market, g.gpu.market);
  }
  const Node* box = usual_box(catalog, market, cards);
  for (NodeGroup& g : groups) {
    g.node = *box;
    g.node.gpu = g.gpu.id;
  }
}

Result<Cluster> join(const Catalog& catalog, std::vector<NodeGroup> groups, std::string_view spoken,
                     const ClusterOptions& options) {
  std::int64_t gpus = 0;
  int nodes = 0;
  for (NodeGroup& g : groups) {
    gpus += std::int64_t{g.nodes} * g.gpus_per_node;
    if (gpus > max_cluster_gpus) return bad_cluster(spoken, "more than 1000000 GPUs");
    nodes += g.nodes;
    if (options.host_ram) g.node.host_ram = options.host_ram;
    if (g.node.power_limit_w) g.gpu.power_limit_w = g.node.power_limit_w;
    if (options.power_limit_w) g.gpu.power_limit_w = *options.power_limit_w;
    if (options.peer_access) g.gpu.peer_over_pcie = *options.peer_access;
    if (options.used_memory) g.gpu.memory_taken = *options.used_memory;
    if (options.pcie_lanes) g.node.pcie_lanes_per_gpu = *options.pcie_lanes;
  }
  for (const NodeGroup& g : groups)
    if (g.gpu.vendor != groups.front().gpu.vendor)
      return bad_cluster(spoken, groups.front().gpu.name + " and " + g.gpu.name +
                                     " have no collective library in common, so that no run can "
                                     "use both: ask for each alone");
  Cluster cluster;
  if (nodes > 1 || options.network) {
    auto network = network_for(catalog, groups, options);
    if (!network) return network.error();
    if (options.network) {
      for (NodeGroup& g : groups) {
        g.node.network = network->id;
        g.node.nic_count = std::max(1, g.node.nic_count);
        g.node.nic_bandwidth = network->port_bandwidth;
      }
    }
    if (nodes > 1) cluster.network = *std::move(network);
  }
  cluster.groups = std::move(groups);
  cluster.spoken = std::string(spoken);
  return cluster;
}

}  // namespace shardwise
