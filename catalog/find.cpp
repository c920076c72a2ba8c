#include "catalog/find.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "catalog/json_document.hpp"
#include "catalog/model_name.hpp"
#include "catalog/names.hpp"
#include "catalog/unsupported_framework.hpp"
#include "catalog/unsupported_model.hpp"

namespace shardwise {
namespace {

template <class Entry>
const Entry* named(const std::vector<Entry>& entries, std::string_view name) {
  for (const Entry& e : entries) {
    if (same_name(e.id, name) || same_name(e.name, name)) return &e;
    for (const std::string& alias : e.aliases)
      if (same_name(alias, name)) return &e;
    if constexpr (requires { e.boards; })
      for (const std::string& board : e.boards)
        if (same_name(board, name)) return &e;
  }
  return nullptr;
}

template <class Entry>
std::vector<std::string_view> all_names(const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  for (const Entry& e : entries) {
    names.push_back(e.id);
    if constexpr (requires { e.aliases; })
      names.insert(names.end(), e.aliases.begin(), e.aliases.end());
  }
  return names;
}

Problem unknown(const char* what, const char* list, std::string_view name,
                std::vector<std::string_view> names) {
  const std::string hint = did_you_mean(name, names);
  return {ProblemKind::request, what,
          std::string("unknown ") + what + " \"" + printable(name) + '"' +
              (hint.empty() ? "; `shardwise catalog list " + std::string(list) + "` names them"
                            : "; " + hint)};
}

// Words that say who made a card, not which card it is.
constexpr std::array<std::string_view, 7> makers{
    {"nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "intel"}};

std::string without_makers(std::string_view name) {
  std::string text = normalised(name.substr(0, name.find('(')));  // "A100 (DGX-A100)"
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view maker : makers) {
      if (text.size() <= maker.size() || text.compare(0, maker.size(), maker) != 0) continue;
      if (text[maker.size()] != '-') continue;
      text.erase(0, maker.size() + 1);
      again = true;
    }
  }
  return text;
}

struct NameAndSize {
  std::string_view name;
  double gib;
};

// "rtx-4090-24gb" is "rtx-4090" and 24.
std::optional<NameAndSize> split_size(std::string_view name) {
  std::size_t end = name.size();
  for (const std::string_view unit : {"gib", "gb", "g"}) {
    if (end < unit.size() || name.substr(end - unit.size()) != unit) continue;
    end -= unit.size();
    break;
  }
  if (end == name.size()) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  int gib = 0;
  const auto parsed = std::from_chars(name.data() + begin, name.data() + end, gib);
  if (parsed.ec != std::errc() || begin == 0) return std::nullopt;
  std::string_view rest = name.substr(0, begin);
  while (!rest.empty() && rest.back() == '-') rest.remove_suffix(1);
  if (rest.empty()) return std::nullopt;
  return NameAndSize{rest, static_cast<double>(gib)};
}

const Gpu* gpu_named(const std::vector<Gpu>& gpus, std::string_view name) {
  if (const Gpu* gpu = named(gpus, name)) return gpu;
  const std::string text = without_makers(name);
  if (text.empty()) return nullptr;
  if (const Gpu* gpu = named(gpus, text)) return gpu;
  const auto sized = split_size(text);
  if (!sized) return nullptr;
  const Gpu* gpu = named(gpus, sized->name);
  return gpu && gib(gpu->memory) == sized->gib ? gpu : nullptr;
}

// "13.5b" in billions; nothing for other names.
std::optional<double> spoken_size(std::string_view name) {
  if (name.size() < 2 || (name.back() | 0x20) != 'b') return std::nullopt;
  double billions = 0;
  const char* end = name.data() + name.size() - 1;
  const auto parsed = std::from_chars(name.data(), end, billions);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return billions;
}

// The sizes below and above that stand for a model: "did you mean 13b or 14b?"; "" for other names.
std::string nearest_sizes(std::string_view name, const std::vector<std::string_view>& names) {
  const auto wanted = spoken_size(name);
  if (!wanted) return {};
  std::string_view below, above;
  for (const std::string_view one : names) {
    const auto size = spoken_size(one);
    if (!size) continue;
    if (*size < *wanted && (below.empty() || *size > *spoken_size(below))) below = one;
    if (*size > *wanted && (above.empty() || *size < *spoken_size(above))) above = one;
  }
  if (below.empty() && above.empty()) return {};
  const char* between = below.empty() || above.empty() ? "" : " or ";
  return "did you mean " + std::string(below) + between + std::string(above) + "?";
}

// What may follow a framework's name, as normalised: nothing, "-0.8", "-v2.1", "==0.9.6", "-(1.2)".
bool follows_a_name(std::string_view rest) {
  constexpr std::string_view signs = "-.=()v";
  return std::all_of(rest.begin(), rest.end(), [&](char c) {
    return (c >= '0' && c <= '9') || signs.find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<const Gpu*> find_gpu(const Catalog& catalog, std::string_view name) {
  if (const Gpu* gpu = gpu_named(catalog.gpus, name)) return gpu;
  return unknown("GPU", "gpus", name, all_names(catalog.gpus));
}

int gpus_of_one(const Gpu& gpu, std::string_view name) {
  const std::string text = without_makers(name);
  const bool board = std::any_of(gpu.boards.begin(), gpu.boards.end(), [&](const std::string& b) {
    return same_name(b, name) || same_name(b, text);
  });
  return board ? gpu.gpus_per_board : 1;
}

const Node* node_named(const Catalog& catalog, std::string_view name) {
  return named(catalog.nodes, name);
}

Result<const Node*> find_node(const Catalog& catalog, std::string_view name) {
  if (const Node* node = node_named(catalog, name)) return node;
  return unknown("node", "nodes", name, all_names(catalog.nodes));
}

Result<const Network*> find_network(const Catalog& catalog, std::string_view name) {
  if (const Network* network = named(catalog.networks, name)) return network;
  return unknown("network", "networks", name, all_names(catalog.networks));
}

Result<const Transformer*> find_model(const Catalog& catalog, std::string_view name) {
  for (const Transformer& m : catalog.models)
    if (same_name(m.id, name)) return &m;
  if (const auto why = unsupported_model(catalog.root, name))
    return Problem{ProblemKind::request, "model", *why};
  if (const Transformer* m = model_meant(name, catalog.models, catalog.model_aliases)) return m;
  std::vector<std::string_view> names = all_names(catalog.models);
  for (const auto& [alias, id] : catalog.model_aliases) names.push_back(alias);
  Problem problem = unknown("model", "models", name, names);
  if (const std::string sizes = nearest_sizes(name, names); !sizes.empty()) {
    problem.what = "unknown model \"" + printable(name) + "\"; " + sizes;
    return problem;
  }
  const auto slash = name.rfind('/');  // "owner/name"
  if (const std::string hint =
          slash == std::string_view::npos ? "" : did_you_mean(name.substr(slash + 1), names);
      !hint.empty())
    problem.what = "unknown model \"" + printable(name) + "\"; " + hint;
  return problem;
}

const Framework* framework_of_id(const Catalog& catalog, std::string_view id) {
  for (const Framework& f : catalog.frameworks)
    if (f.id == id) return &f;
  return nullptr;
}

Result<const Framework*> find_framework(const Catalog& catalog, std::string_view name) {
  for (const Framework& f : catalog.frameworks)
    if (same_name(f.id, name) || same_name(f.name, name)) return &f;
  const std::string text = normalised(name);
  const Framework* best = nullptr;
  std::size_t longest = 0;
  for (const Framework& f : catalog.frameworks) {
    for (const std::string& word : f.match) {
      const std::string wanted = normalised(word);
      if (wanted.size() <= longest || text.compare(0, wanted.size(), wanted) != 0) continue;
      if (!follows_a_name(std::string_view(text).substr(wanted.size()))) continue;
      best = &f;
      longest = wanted.size();
    }
  }
  if (best) return best;
  if (const auto why = unsupported_framework(catalog.root, name))
    return Problem{ProblemKind::request, "framework", *why};
  std::vector<std::string_view> names = all_names(catalog.frameworks);
  for (const Framework& f : catalog.frameworks)
    names.insert(names.end(), f.match.begin(), f.match.end());
  return unknown("framework", "frameworks", name, names);
}

}  // namespace shardwise
