#include "catalog/cluster_parser.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "catalog/placement.hpp"
#include "catalog/spoken_cluster.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

std::vector<std::string_view> node_names(const Catalog& catalog) {
  std::vector<std::string_view> names;
  for (const Node& node : catalog.nodes) {
    names.push_back(node.id);
    names.insert(names.end(), node.aliases.begin(), node.aliases.end());
  }
  return names;
}

// A number alone, as in "6x24", lacks its unit where there are cards of that memory size.
std::string meant_by(const Catalog& catalog, const std::string& name) {
  const bool size = std::any_of(catalog.gpus.begin(), catalog.gpus.end(), [&](const Gpu& gpu) {
    return gpu.stands_for_size && std::to_string(std::lround(gib(gpu.memory))) == name;
  });
  return size ? "did you mean " + name + "GB?" : did_you_mean(name, cluster_names(catalog));
}

// The "24XB" at the end of what was said: a number with letters that end as units do and are none.
// Its X may have been taken for "times". Empty where there is none.
std::string_view size_of_unknown_unit(std::string_view text) {
  constexpr std::string_view digits = "0123456789.";
  const std::size_t last = text.find_last_of(digits);
  if (last == std::string_view::npos) return {};
  const std::string_view unit = text.substr(last + 1);
  if (unit.empty() || unit.size() > 3 || (unit.back() | 0x20) != 'b') return {};
  if (unit.find_first_of(" +,-") != std::string_view::npos) return {};
  const std::size_t before = text.find_last_not_of(digits, last);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return spoken_memory_gib(text.substr(begin)) ? std::string_view() : text.substr(begin);
}

// Hardware that people ask for and that no row describes, and why.
struct Maker {
  std::string_view hardware, reason;
};
constexpr std::string_view shared_memory =
    "the CPU holds a part of their memory, and no training run on one is known here";
constexpr Maker apple{"Apple's chips",
                      "PyTorch trains on them by Metal, without CUDA's kernels and NCCL"};
constexpr Maker arc{"Intel's Arc cards",
                    "PyTorch trains on them by XPU and oneCCL, of which nothing is measured here"};
constexpr Maker tpu{"Google's TPUs", "XLA lays out their memory and schedules their steps"};
constexpr Maker trainium{"AWS's Trainium chips",
                         "the Neuron compiler lays out their memory and schedules their steps"};
constexpr Maker ascend{
    "Huawei's Ascend chips",
    "PyTorch trains on them by CANN and HCCL, of which nothing is measured here"};
constexpr Maker jetson{"NVIDIA's Jetson boards", shared_memory};
constexpr Maker ryzen{"AMD's Ryzen AI chips", shared_memory};
constexpr Maker mi300a{"AMD's MI300A", shared_memory};
constexpr Maker mig{"MIG slices",
                    "a card of a slice's memory, 40GB for 3g.40gb, tells what fits in it, and "
                    "nothing here how fast it is"};
constexpr Maker cpu{"CPUs", "what is forecast is training on GPUs"};

// By the words of a name.
struct OutOfScope {
  std::string_view word;
  const Maker* maker;
};
constexpr OutOfScope out_of_scope[] = {{"apple", &apple},
                                       {"mac", &apple},
                                       {"macbook", &apple},
                                       {"m1", &apple},
                                       {"m2", &apple},
                                       {"m3", &apple},
                                       {"m4", &apple},
                                       {"m5", &apple},
                                       {"arc", &arc},
                                       {"a750", &arc},
                                       {"a770", &arc},
                                       {"b570", &arc},
                                       {"b580", &arc},
                                       {"b60", &arc},
                                       {"tpu", &tpu},
                                       {"tpuv4", &tpu},
                                       {"tpuv5e", &tpu},
                                       {"tpuv5p", &tpu},
                                       {"tpuv6e", &tpu},
                                       {"trainium", &trainium},
                                       {"trn1", &trainium},
                                       {"trn2", &trainium},
                                       {"trainium2", &trainium},
                                       {"ascend", &ascend},
                                       {"910b", &ascend},
                                       {"ascend910", &ascend},
                                       {"ascend910b", &ascend},
                                       {"ascend910c", &ascend},
                                       {"910c", &ascend},
                                       {"jetson", &jetson},
                                       {"orin", &jetson},
                                       {"strix", &ryzen},
                                       {"ryzen", &ryzen},
                                       {"8060s", &ryzen},
                                       {"mi300a", &mi300a},
                                       {"mig", &mig},
                                       {"cpu", &cpu},
                                       {"xeon", &cpu}};

// "3g.40gb": slices of compute, and of memory.
bool is_mig_profile(std::string_view word) {
  const std::size_t at = word.find("g.");
  return at != std::string_view::npos && at > 0 && at + 2 < word.size() && is_digit(word[at - 1]) &&
         is_digit(word[at + 2]);
}

// Whose hardware a word of a name is; nullptr where it may be a GPU's.
const Maker* maker_out_of_scope(const std::string& name) {
  const std::string dashed = normalised(name);
  if (is_mig_profile(dashed)) return &mig;
  for (const OutOfScope& one : out_of_scope) {
    const std::size_t at = dashed.find(one.word);
    if (at == std::string::npos || (at > 0 && dashed[at - 1] != '-')) continue;
    const std::size_t end = at + one.word.size();
    if (end == dashed.size() || dashed[end] == '-') return one.maker;
  }
  return nullptr;
}

// Notebooks that people name for the GPU which they lend.
struct LentGpu {
  std::string_view word, gpus;
};
constexpr LentGpu lent_gpus[] = {{"colab", "Colab lends one GPU, a t4 where it is free"},
                                 {"kaggle", "Kaggle lends 2xt4, or one p100"}};

std::string_view lent_by(const std::string& name) {
  const std::string dashed = normalised(name);
  for (const LentGpu& one : lent_gpus)
    if (dashed.find(one.word) != std::string::npos) return one.gpus;
  return {};
}

// "3090 pcie x4", "4090 egpu": the width of a slot, behind the name of its card.
bool names_slot(const std::string& name) {
  const std::string dashed = normalised(name);
  for (const std::string_view word : {"egpu", "riser", "oculink", "thunderbolt", "pcie-x"})
    if (dashed.find(word) != std::string::npos) return true;
  for (const std::string_view lanes : {"-x1", "-x2", "-x4", "-x8", "-x16"})
    if (dashed.ends_with(lanes)) return true;
  return false;
}

// Nodes of the GPU in "3090s with nvlink" whose cards are bridged, as words; "" where none is.
std::string bridged(const Catalog& catalog, const std::string& name) {
  const std::string dashed = normalised(name);
  std::string out;
  if (dashed.find("nvlink") == std::string::npos) return out;
  for (const Node& node : catalog.nodes) {
    if (node.id.find("nvlink") == std::string::npos) continue;
    const auto gpu = find_gpu(catalog, node.gpu);
    const bool meant = gpu && std::any_of((*gpu)->aliases.begin(), (*gpu)->aliases.end(),
                                          [&](const std::string& alias) {
                                            return dashed.starts_with(normalised(alias));
                                          });
    if (meant) out += (out.empty() ? "" : " or ") + node.id;
  }
  return out;
}

Problem unknown_name(const Catalog& catalog, std::string_view text, const std::string& name) {
  if (const Maker* maker = maker_out_of_scope(name))
    return bad_cluster(text, std::string(maker->hardware) +
                                 " are not in the catalog: " + std::string(maker->reason));
  if (const std::string_view gpus = lent_by(name); !gpus.empty())
    return bad_cluster(text, std::string(gpus));
  if (names_slot(name))
    return bad_cluster(
        text,
        "name the card alone, behind a count of them as in 8xH100: --pcie-lanes says how wide "
        "its slot, riser or cable is");
  if (const std::string_view size = size_of_unknown_unit(text); !size.empty())
    return bad_cluster(
        text, "no unit of memory is recognised in \"" + printable(size) + "\"; expected GB or GiB");
  if (const std::string nodes = bridged(catalog, name); !nodes.empty())
    return bad_cluster(text, "NVLink between cards is of a node: did you mean " + nodes + '?');
  const bool none = text.find_first_not_of('0') == std::string_view::npos;
  const bool negative = text.size() > 1 && text[0] == '-' && is_digit(text[1]);
  if (none || negative) return bad_cluster(text, "a count of GPUs is a whole number from 1");
  if (text.size() == 1 && is_digit(text[0]))
    return bad_cluster(text, "that is a count of no GPU; did you mean " + std::string(text) +
                                 "x24GB, or a card's name?");
  // What is left of "7900xt" behind its x is no name.
  const std::string whole = name.size() == 1 ? std::string(text) : name;
  const std::string hint = meant_by(catalog, whole);
  return bad_cluster(
      text, "no GPU or node is called \"" + printable(whole) + '"' +
                (hint.empty() ? ", `shardwise catalog list gpus` names them" : ", " + hint));
}

// Cards of one nominal memory size, in order of market and id.
std::vector<const Gpu*> cards_of_size(const Catalog& catalog, double gib_wanted) {
  std::vector<const Gpu*> cards;
  for (const Gpu& gpu : catalog.gpus)
    if (gpu.stands_for_size && gib(gpu.memory) == gib_wanted) cards.push_back(&gpu);
  std::stable_sort(cards.begin(), cards.end(),
                   [](const Gpu* a, const Gpu* b) { return a->market < b->market; });
  return cards;
}

std::string known_sizes(const Catalog& catalog) {
  std::vector<int> sizes;
  for (const Gpu& gpu : catalog.gpus)
    if (gpu.stands_for_size) sizes.push_back(static_cast<int>(gib(gpu.memory)));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::string out;
  for (const int size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size);
  return out;
}

// One part's cards, placed. A part that names nodes brings its own count of cards.
Result<std::vector<NodeGroup>> place_part(const Catalog& catalog, std::string_view text,
                                          const SpokenPart& part, const ClusterOptions& options) {
  if (const Node* node = node_named(catalog, part.name)) {
    if (part.nodes && part.count)
      return bad_cluster(text, '"' + part.name + "\" is a whole node; one count is enough");
    return place_nodes(catalog, *node, part.nodes.value_or(part.count.value_or(1)), options);
  }
  if (const auto gpu = find_gpu(catalog, part.name))
    return place_cards(
        catalog, **gpu,
        {part.nodes, part.count.value_or(1) * gpus_of_one(**gpu, part.name), bool(part.count)},
        options);
  return unknown_name(catalog, text, part.name);
}

bool in_one_box(const std::vector<NodeGroup>& groups, const std::vector<SpokenPart>& parts) {
  int cards = 0;
  for (const NodeGroup& g : groups) {
    if (g.nodes != 1 || !g.gpu.default_node.empty()) return false;
    cards += g.gpus_per_node;
  }
  for (const SpokenPart& p : parts)
    if (p.nodes) return false;
  return groups.size() > 1 && cards <= largest_usual_box;
}

Result<std::vector<Cluster>> clusters_of_size(const Catalog& catalog, std::string_view text,
                                              const SpokenPart& part, double size,
                                              const ClusterOptions& options) {
  std::vector<Cluster> clusters;
  for (const Gpu* gpu : cards_of_size(catalog, size)) {
    auto groups =
        place_cards(catalog, *gpu, {part.nodes, part.count.value_or(1), bool(part.count)}, options);
    if (!groups) return groups.error();
    auto cluster = join(catalog, *std::move(groups), text, options);
    if (!cluster) return cluster.error();
    clusters.push_back(*std::move(cluster));
  }
  if (clusters.empty())
    return bad_cluster(text, "no catalogued card has " + part.name + "; there are cards of " +
                                 known_sizes(catalog) + " GB");
  return clusters;
}

// Assumed: the least share of a board's power that it may be held to. Drivers refuse more: an RTX
// 3080 of 340 W goes down to 100, a Quadro RTX 6000 of 260 W to 100 (ml-energy/zeus#143), an RTX
// 5060 Ti of 180 W to 150 (b00nz/mVolt#39).
constexpr double least_share_of_power = 0.2;

Problems power_problems(const std::vector<Cluster>& clusters, const ClusterOptions& options) {
  if (!options.power_limit_w) return {};
  for (const Cluster& cluster : clusters)
    for (const NodeGroup& g : cluster.groups) {
      const double least = std::ceil(least_share_of_power * g.gpu.power_w);
      if (*options.power_limit_w < least)
        return {{ProblemKind::request, "--power-limit",
                 "expected at least " + std::to_string(std::lround(least)) + ", a fifth of the " +
                     std::to_string(std::lround(g.gpu.power_w)) + " W of " + g.gpu.name +
                     " (drivers take no less), found " + std::to_string(*options.power_limit_w)}};
    }
  return {};
}

// In GiB to a tenth: 23.6.
std::string told_gib(Bytes size) {
  std::string text = std::to_string(gib(size));
  return text.substr(0, text.find('.') + 2) + " GiB";
}

Problems memory_problems(const std::vector<Cluster>& clusters, const ClusterOptions& options) {
  if (!options.used_memory) return {};
  for (const Cluster& cluster : clusters)
    for (const NodeGroup& g : cluster.groups)
      if (g.gpu.usable_memory() <= Bytes(0))
        return {{ProblemKind::request, "--used-memory",
                 told_gib(*options.used_memory) + " leave nothing of the " +
                     told_gib(g.gpu.usable_memory() + g.gpu.memory_taken) + " of " + g.gpu.name}};
  return {};
}

Result<std::vector<Cluster>> read_clusters(const Catalog& catalog, std::string_view text,
                                           const ClusterOptions& options) {
  const auto parts = read_spoken_cluster(text, cluster_names(catalog));
  if (!parts) return parts.error();
  for (const SpokenPart& part : *parts) {
    const auto size = spoken_memory_gib(part.name);
    if (!size) continue;
    if (parts->size() > 1)
      return bad_cluster(text, "a bare memory size stands for several cards and cannot be mixed");
    return clusters_of_size(catalog, text, part, *size, options);
  }
  std::vector<NodeGroup> groups;
  for (const SpokenPart& part : *parts) {
    auto placed = place_part(catalog, text, part, options);
    if (!placed) return placed.error();
    groups.insert(groups.end(), placed->begin(), placed->end());
  }
  const bool mixed = in_one_box(groups, *parts);
  if (mixed) share_one_box(catalog, groups);
  auto cluster = join(catalog, std::move(groups), text, options);
  if (!cluster) return cluster.error();
  cluster->mixed_in_one_node = mixed;
  if (mixed) cluster->network.reset();
  return std::vector<Cluster>{*std::move(cluster)};
}

// Links that jobs share are shared evenly (max-min): a job's part of every port is the same.
void leave_share(std::vector<Cluster>& clusters, double share) {
  for (Cluster& cluster : clusters)
    if (cluster.network) cluster.network->share = share;
}

}  // namespace

std::vector<std::string_view> cluster_names(const Catalog& catalog) {
  std::vector<std::string_view> names;
  for (const Gpu& gpu : catalog.gpus) {
    names.push_back(gpu.id);
    names.insert(names.end(), gpu.aliases.begin(), gpu.aliases.end());
    names.insert(names.end(), gpu.boards.begin(), gpu.boards.end());
  }
  const auto nodes = node_names(catalog);
  names.insert(names.end(), nodes.begin(), nodes.end());
  return names;
}

Result<std::vector<Cluster>> parse_gpus(const Catalog& catalog, std::string_view text,
                                        const ClusterOptions& options) {
  auto clusters = read_clusters(catalog, text, options);
  if (!clusters) return clusters;
  Problems problems = power_problems(*clusters, options);
  if (problems.empty()) problems = memory_problems(*clusters, options);
  if (!problems.empty()) return problems;
  if (options.network_share) leave_share(*clusters, *options.network_share);
  return clusters;
}

}  // namespace shardwise
