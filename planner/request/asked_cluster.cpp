#include "planner/request/asked_cluster.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "planner/figures.hpp"
#include "planner/request/card_sizes.hpp"
#include "planner/request/named_boxes.hpp"
#include "planner/sentence.hpp"
#include "simulator/network/topology.hpp"

namespace shardwise {
namespace {

using Clusters = std::vector<Cluster>;

Problem wrong_nodes(std::string what) { return {ProblemKind::request, "--nodes", std::move(what)}; }

// "dgx-h100" of "2xdgx-h100"; what follows the counts of other words.
std::string_view behind_count(std::string_view spoken) {
  const std::size_t at = std::min(spoken.find_first_not_of("0123456789"), spoken.size());
  const bool counted = at > 0 && at < spoken.size() && (spoken[at] == 'x' || spoken[at] == 'X');
  return counted ? spoken.substr(at + 1) : spoken;
}

Result<Clusters> spread_over_nodes(const Catalog& catalog, const Request& r, Clusters clusters) {
  if (const Node* node = node_named(catalog, behind_count(*r.gpus))) {
    if (clusters.front().nodes() == *r.nodes) return clusters;
    return wrong_nodes(sentence(
        *r.gpus, " says how many nodes there are: ", clusters.front().nodes(), " of ",
        counted(node->gpus, "GPU"), "; expected --gpus ", *r.nodes, 'x', behind_count(*r.gpus)));
  }
  const int gpus = clusters.front().gpus(), nodes = *r.nodes;
  if (r.gpus_per_node) {
    if (clusters.front().nodes() == nodes) return clusters;
    return wrong_nodes(sentence(nodes, " contradicts --gpus-per-node ", *r.gpus_per_node, " of ",
                                counted(gpus, "GPU")));
  }
  if (gpus % nodes != 0)
    return wrong_nodes(sentence(counted(gpus, "GPU"), gpus == 1 ? " does" : " do",
                                " not divide over ", counted(nodes, "node")));
  ClusterOptions options = cluster_options(r);
  options.gpus_per_node = gpus / nodes;
  return parse_gpus(catalog, *r.gpus, options);
}

// Cards that come on a board of their own (SXM) share no box with others. Empty: nothing to say.
std::string told_boards(const Request& r, const Cluster& c) {
  const auto on_board = std::find_if(c.groups.begin(), c.groups.end(), [](const NodeGroup& g) {
    return !g.gpu.default_node.empty();
  });
  const bool in_slots = std::any_of(c.groups.begin(), c.groups.end(),
                                    [](const NodeGroup& g) { return g.gpu.default_node.empty(); });
  if (on_board == c.groups.end() || !in_slots || !c.network) return "";
  return sentence(*r.gpus, " is taken as boxes joined by ", c.network->name, ": ",
                  on_board->gpu.name,
                  " comes on a board of its own; name a PCIe card for one box.");
}

Topology topology_with(PeerAccess access, Cluster cluster, const LinkCalibration& links) {
  for (NodeGroup& g : cluster.groups) g.gpu.peer_over_pcie = access;
  return {cluster, links};
}

bool peer_access_matters(const Cluster& cluster, const LinkCalibration& links) {
  const Topology with = topology_with(PeerAccess::yes, cluster, links);
  const Topology without = topology_with(PeerAccess::no, cluster, links);
  const int gpus = with.gpus_per_node();
  for (int a = 0; a < gpus; ++a)
    for (int b = a + 1; b < gpus; ++b)
      if (with.path(a, b).transport != without.path(a, b).transport) return true;
  return false;
}

std::string told_peer_access(const LinkCalibration& links, const Request& r,
                             const Clusters& clusters) {
  if (std::none_of(clusters.begin(), clusters.end(),
                   [&](const Cluster& c) { return peer_access_matters(c, links); }))
    return "--peer-access changes nothing here: NCCL would take PCIe directly between no two GPUs "
           "of a machine, which NVLink joins or no PCIe switch (NCCL_P2P_LEVEL).";
  if (*r.peer_access == PeerAccess::no)
    return "--peer-access no: what the GPUs of a machine send each other over PCIe goes through "
           "host memory.";
  return "--peer-access yes: GPUs below one PCIe switch reach each other directly; the usual "
         "drivers "
         "of many consumer cards refuse it.";
}

std::string told_pcie_lanes(int lanes, const Clusters& clusters) {
  for (const Cluster& c : clusters)
    for (const NodeGroup& g : c.groups)
      if (g.gpu.host_link || lanes > g.gpu.pcie_lanes)
        return sentence("--pcie-lanes ", lanes, " changes nothing for ", g.gpu.name,
                        g.gpu.host_link
                            ? ", which NVLink joins to its CPU."
                            : sentence(", which has ", counted(g.gpu.pcie_lanes, "lane"), '.'));
  const NodeGroup& first = clusters.front().groups.front();
  return sentence("--pcie-lanes: every GPU's slot has ", counted(lanes, "lane"), " of PCIe ",
                  std::min(first.gpu.pcie_generation,
                           first.node.pcie_generation.value_or(first.gpu.pcie_generation)),
                  ", or twice as many of the generation before.");
}

std::string told_network_share(double share, const Clusters& clusters) {
  if (std::all_of(clusters.begin(), clusters.end(),
                  [](const Cluster& c) { return c.nodes() == 1; }))
    return "--network-share changes nothing here: all GPUs are in one machine.";
  return sentence(
      "--network-share: the run gets ", fixed(100 * share, 1),
      " % of the network's rate all the time, other jobs the rest; latency is as alone.");
}

// "1-4x3090" and "1 to 4x3090" as plan takes it, "1..4x3090"; "" where nothing is meant so.
std::string as_range(const std::string& gpus) {
  const std::size_t least = gpus.find_first_not_of("0123456789"), times = gpus.find_first_of("xX");
  if (least == std::string::npos || least == 0 || times == std::string::npos || times < least)
    return {};
  const std::string between = gpus.substr(least, times - least);
  const std::size_t most = between.find_first_of("0123456789");
  if (most == std::string::npos ||
      between.find_first_not_of("0123456789 ", most) != std::string::npos)
    return {};
  const std::string word = between.substr(0, most);
  if (word != "-" && word != " - " && word != " to ") return {};
  return sentence(gpus.substr(0, least), "..", between.substr(most), gpus.substr(times));
}

// "2x3090 vs 4090", "1..4x3090": who answers about several.
std::optional<Problem> several_boxes(const std::string& gpus) {
  if (named_boxes(gpus).size() > 1)
    return Problem{ProblemKind::request, "--gpus",
                   sentence('"', printable(gpus), "\" is several boxes: shardwise compare sets ",
                            "them side by side, --gpus for each")};
  if (gpus.find("..") != std::string::npos)
    return Problem{ProblemKind::request, "--gpus",
                   sentence('"', printable(gpus), "\" is several sizes, which shardwise plan ",
                            "takes; shardwise compare sets boxes side by side, --gpus for each")};
  if (const std::string range = as_range(gpus); !range.empty())
    return Problem{ProblemKind::request, "--gpus",
                   sentence('"', printable(gpus), "\" is no number of GPUs; did you mean ",
                            printable(range), ", which shardwise plan takes?")};
  return std::nullopt;
}

}  // namespace

std::string gpus_behind(const Catalog& catalog, const std::string& words) {
  for (std::size_t at = words.find(' '); at != std::string::npos; at = words.find(' ', at + 1))
    if (parse_gpus(catalog, std::string_view(words).substr(at + 1), {}))
      return words.substr(at + 1);
  return {};
}

ClusterOptions cluster_options(const Request& r) {
  return {r.network,     r.host_ram,      r.gpus_per_node, r.power_limit_w,
          r.peer_access, r.network_share, r.used_memory,   r.pcie_lanes};
}

Result<Clusters> asked_clusters(const Catalog& catalog, const Request& r) {
  const std::string meant = r.gpus ? "" : gpus_behind(catalog, r.model.value_or(""));
  if (!r.gpus)
    return Problem{
        ProblemKind::request, "--gpus",
        sentence(
            "is missing; expected for example 6x24GB, 2xRTX-3090, 16xH100-SXM or dgx-h100",
            meant.empty() ? meant : sentence("; did you mean --gpus ", printable(meant), '?'))};
  if (const auto several = several_boxes(*r.gpus)) return *several;
  if (r.pcie_lanes && !std::has_single_bit(static_cast<unsigned>(*r.pcie_lanes)))
    return Problem{ProblemKind::request, "--pcie-lanes",
                   sentence("expected 1, 2, 4, 8 or 16, found ", *r.pcie_lanes)};
  auto clusters = parse_gpus(catalog, *r.gpus, cluster_options(r));
  if (!clusters || !r.nodes) return clusters;
  return spread_over_nodes(catalog, r, *std::move(clusters));
}

std::vector<std::string> machine_notes(const Facts& facts, const Request& r,
                                       const Clusters& clusters) {
  std::vector<std::string> notes;
  if (std::string boards = told_boards(r, clusters.front()); !boards.empty())
    notes.push_back(std::move(boards));
  if (r.network && std::all_of(clusters.begin(), clusters.end(),
                               [](const Cluster& c) { return c.nodes() == 1; }))
    notes.emplace_back("--network changes nothing here: all GPUs are in one machine.");
  if (r.network_share) notes.push_back(told_network_share(*r.network_share, clusters));
  for (std::string& note : notes_of_sizes(facts.catalog, *r.gpus)) notes.push_back(std::move(note));
  if (r.used_memory)
    notes.push_back(sentence("--used-memory: other programs have ", shown_gib(*r.used_memory),
                             " of every GPU; memory and capacity below are without it."));
  if (r.pcie_lanes) notes.push_back(told_pcie_lanes(*r.pcie_lanes, clusters));
  if (r.peer_access) notes.push_back(told_peer_access(facts.profile.links, r, clusters));
  return notes;
}

}  // namespace shardwise
