#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/find.hpp"
#include "catalog/placement.hpp"
#include "catalog/text_match.hpp"
#include "planner/validation/replay_parts.hpp"

namespace shardwise {
namespace {

const NetworkReading* network_meant(const Reading& reading, const Gpu& gpu,
                                    const std::string& text) {
  const NetworkReading* best = nullptr;
  for (const NetworkReading& row : reading.networks) {
    if (!row.gpu.empty() && !holds_words(gpu.id, row.gpu)) continue;
    if (!holds_words(text, row.text)) continue;
    const bool longer = best == nullptr || row.text.size() > best->text.size();
    const bool narrower =
        best != nullptr && row.text.size() == best->text.size() && best->gpu.empty();
    if (longer || narrower) best = &row;
  }
  return best;
}

// What a node sends in a second where the text says so in bytes, as "TCP, 0.6 GB/s" does: bits are
// "Gb/s", and a row that holds a rate itself has read it.
std::optional<BytesPerSecond> bytes_stated(std::string_view text, const NetworkReading& row) {
  if (lowered(row.text).find("gb/s") != std::string::npos) return std::nullopt;
  const std::size_t unit = text.find("GB/s");
  if (unit == std::string_view::npos) return std::nullopt;
  const std::string_view before = trimmed(text.substr(0, unit));
  std::size_t begin = before.size();
  while (begin > 0 && (is_digit(before[begin - 1]) || before[begin - 1] == '.')) --begin;
  if (begin > 0 && is_letter(before[begin - 1])) return std::nullopt;  // "8x50 GB/s"
  double gigabytes = 0;
  const char* end = before.data() + before.size();
  const auto parsed = std::from_chars(before.data() + begin, end, gigabytes);
  if (parsed.ec != std::errc() || parsed.ptr != end || gigabytes <= 0) return std::nullopt;
  return BytesPerSecond(gigabytes * 1e9);
}

// A card of which a record says more lanes than the usual board gives it was in another one: the
// smallest for any card that has them.
void set_lanes(const ReplayContext& c, NodeGroup& group) {
  const auto& text = c.run.hardware.intra_node;
  const LaneReading* row = text ? longest_match(c.reading.lanes, *text) : nullptr;
  const auto short_of = [row](const Node& node) {
    return node.pcie_lanes_per_gpu && *node.pcie_lanes_per_gpu < row->lanes;
  };
  if (row == nullptr || !short_of(group.node)) return;
  const Node* board = nullptr;
  for (const Node& node : c.catalog.nodes)
    if (node.gpu.empty() && node.gpus >= group.gpus_per_node && !short_of(node) &&
        (board == nullptr || node.gpus < board->gpus))
      board = &node;
  if (board == nullptr) return;
  group.node = *board;
  group.node.gpu = group.gpu.id;
}

// The longest row that the text holds, of those that such a card on such a board can mean.
IntraLink link_meant(const Reading& reading, const Gpu& gpu, const Node& node,
                     const std::string& text) {
  const bool unlinked =
      node.intra_link == IntraLink::pcie_host || node.intra_link == IntraLink::pcie_switch;
  const bool takes_bridges = unlinked && gpu.nvlink > BytesPerSecond(0);
  std::vector<LinkReading> rows;
  std::copy_if(reading.links.begin(), reading.links.end(), std::back_inserter(rows),
               [&](const LinkReading& row) { return !row.where_unlinked || takes_bridges; });
  const LinkReading* row = longest_match(rows, text);
  return row != nullptr ? row->link : node.intra_link;
}

void set_links(const ReplayContext& c, const Gpu& gpu, Node& node, Notes& notes) {
  const RunHardware& h = c.run.hardware;
  if (h.intra_node) node.intra_link = link_meant(c.reading, gpu, node, *h.intra_node);
  const auto inter = h.inter_node ? h.inter_node : stated(c, &PhraseReading::inter_node);
  if (!inter) return;
  const NetworkReading* row = network_meant(c.reading, gpu, *inter);
  if (row == nullptr) {
    notes.push_back("the network \"" + *inter + "\" is not understood: that of " + node.id);
    return;
  }
  node.network = row->network;
  node.nic_count = row->nics;
  node.nic_bandwidth = row->nic_bandwidth;
  if (const auto rate = bytes_stated(*inter, *row)) {
    node.nic_count = 1;
    node.nic_bandwidth = *rate;
    return;
  }
  if (!row->assumed.empty()) notes.push_back("network \"" + *inter + "\": " + row->assumed);
}

// How many boxes of how many cards: as stated where that divides, else as the cards are usually
// sold.
CardCount card_count(const RunHardware& h, int gpus, Notes& notes) {
  if (!h.gpus_per_node) return {std::nullopt, gpus, true};
  const int wanted = std::min(gpus, *h.gpus_per_node);
  if (gpus % wanted == 0) return {gpus / wanted, wanted, true};
  notes.push_back(std::to_string(gpus) + " GPUs do not fill nodes of " + std::to_string(wanted));
  return {std::nullopt, gpus, true};
}

// "8xH100 SXM" and "8 x H100" count what they name.
std::string_view without_count(std::string_view text) {
  std::string_view rest = trimmed(text);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) return text;
  rest = trimmed(rest.substr(digits));
  if (rest.size() < 2 || lower_ascii(rest.front()) != 'x') return text;
  return trimmed(rest.substr(1));
}

// The longest row that the text holds, written with hyphens where it has blanks or underscores:
// "H100_SXM_96GB", "RTX 4090".
const GpuReading* gpu_meant(const Reading& reading, std::string_view text) {
  const GpuReading* row = longest_match_spelled(reading.gpus, text, '-');
  return row != nullptr ? row : longest_match_spelled(reading.gpus, without_count(text), '-');
}

// The card of which the text is a name or an alias, unless a row reads that very text:
// "H100-SXM5-64GB" is not the H100 that the row "h100" means. What stands in brackets tells more
// than a name.
std::optional<Gpu> card_of_own_name(const ReplayContext& c, std::string_view text,
                                    const GpuReading* row) {
  if (constexpr std::string_view vendor = "nvidia "; lowered(text).rfind(vendor, 0) == 0)
    text.remove_prefix(vendor.size());
  if (row != nullptr && row->text.size() >= text.size()) return std::nullopt;
  if (text.find('(') != std::string_view::npos && row != nullptr) return std::nullopt;
  const auto gpu = find_gpu(c.catalog, text);
  return gpu ? std::optional<Gpu>(**gpu) : std::nullopt;
}

}  // namespace

bool gpu_stated(const ReplayContext& c) {
  const auto& text = c.run.hardware.gpu;
  return text && (gpu_meant(c.reading, *text) != nullptr || !holds_words(*text, "not stated"));
}

Part<Gpu> replay_gpu(const ReplayContext& c, Notes& notes) {
  const auto& text = c.run.hardware.gpu;
  if (!gpu_stated(c)) {
    const auto gpu = find_gpu(c.catalog, c.reading.missing_gpu);
    if (!gpu) return Skipped{"GPU not stated", ""};
    notes.push_back("GPU not stated: memory as on " + (*gpu)->name + ", and no time");
    return **gpu;
  }
  const GpuReading* row = gpu_meant(c.reading, *text);
  if (const auto named = card_of_own_name(c, *text, row)) return *named;
  if (row != nullptr) {
    const auto part = stated(c, &PhraseReading::gpu);
    if (part && !row->assumed.empty()) {
      const auto gpu = find_gpu(c.catalog, *part);
      if (!gpu) return Skipped{"GPU not in the catalog", *part};
      notes.push_back("GPU \"" + *text + "\": " + (*gpu)->name + ", as its notes let one tell");
      return **gpu;
    }
    const auto gpu = find_gpu(c.catalog, row->gpu);
    if (!gpu) return Skipped{"GPU not in the catalog", row->gpu};
    if (!row->assumed.empty()) notes.push_back("GPU \"" + *text + "\": " + row->assumed);
    return **gpu;
  }
  const Node* machine = node_named(c.catalog, trimmed(*text));
  if (machine != nullptr && !machine->gpu.empty())
    if (const auto gpu = find_gpu(c.catalog, machine->gpu)) {
      notes.push_back("GPU \"" + *text + "\": that of " + machine->id);
      return **gpu;
    }
  return Skipped{"GPU not in the catalog", *text};
}

Part<Cluster> replay_cluster(const ReplayContext& c, const Gpu& gpu, int gpus, Notes& notes) {
  const RunHardware& h = c.run.hardware;
  ClusterOptions options;
  options.host_ram = h.host_ram;
  options.power_limit_w = h.power_limit_w;
  const GpuReading* row = h.gpu ? gpu_meant(c.reading, *h.gpu) : nullptr;
  if (row && !options.power_limit_w) options.power_limit_w = row->power_limit_w;
  auto groups = place_cards(c.catalog, gpu, card_count(h, gpus, notes), options);
  if (!groups) groups = place_cards(c.catalog, gpu, {std::nullopt, gpus, true}, options);
  if (!groups) return Skipped{"no node for the GPU in the catalog", gpu.id};
  for (NodeGroup& group : *groups) {
    set_lanes(c, group);
    set_links(c, gpu, group.node, notes);
    if (h.usable) group.gpu.memory_offered = std::min(*h.usable, group.gpu.usable_memory());
    if (h.peer_access) group.gpu.peer_over_pcie = *h.peer_access ? PeerAccess::yes : PeerAccess::no;
  }
  auto cluster = join(c.catalog, *std::move(groups), std::to_string(gpus) + "x" + gpu.id, options);
  if (!cluster) return Skipped{"no network between the nodes", cluster.error().front().what};
  return *std::move(cluster);
}

}  // namespace shardwise
