#include "catalog/catalog_links.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "catalog/names.hpp"

namespace shardwise {
namespace {

class Linker {
 public:
  explicit Linker(Problems& problems) : problems_(problems) {}

  // Every name of one kind, normalised and without separators, must mean one entry.
  template <class Entry>
  void index(const char* folder, const std::vector<Entry>& entries) {
    std::unordered_map<std::string, std::string_view> owner;
    for (const Entry& entry : entries) {
      for (const std::string& name : names_of(entry)) {
        const auto [found, is_new] = owner.emplace(squeezed(name), entry.id);
        if (!is_new && found->second != entry.id)
          add(std::string(folder) + '/' + entry.id + ".json:/aliases",
              '"' + name + "\" already means " + std::string(found->second));
      }
    }
  }

  template <class Entry>
  void refer(const std::string& where, const std::string& id, const std::vector<Entry>& entries) {
    if (id.empty()) return;
    const auto at = std::lower_bound(entries.begin(), entries.end(), id,
                                     [](const Entry& e, const std::string& i) { return e.id < i; });
    if (at != entries.end() && at->id == id) return;
    std::vector<std::string_view> ids;
    for (const Entry& e : entries) ids.push_back(e.id);
    const std::string hint = did_you_mean(id, ids);
    add(where, "expected the id of a catalogued entry, found \"" + id + '"' +
                   (hint.empty() ? "" : "; " + hint));
  }

 private:
  template <class Entry>
  static std::vector<std::string> names_of(const Entry& entry) {
    std::vector<std::string> names{entry.id};
    if constexpr (requires { entry.aliases; })
      names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
    return names;
  }
  void add(std::string where, std::string what) {
    problems_.push_back({ProblemKind::file, std::move(where), std::move(what)});
  }

  Problems& problems_;
};

}  // namespace

Problems check_links(const Catalog& catalog) {
  Problems problems;
  Linker linker(problems);
  linker.index("devices", catalog.gpus);
  linker.index("nodes", catalog.nodes);
  linker.index("networks", catalog.networks);
  linker.index("models", catalog.models);
  linker.index("frameworks", catalog.frameworks);
  for (const Gpu& gpu : catalog.gpus)
    linker.refer("devices/" + gpu.id + ".json:/default_node", gpu.default_node, catalog.nodes);
  for (const Node& node : catalog.nodes) {
    linker.refer("nodes/" + node.id + ".json:/gpu", node.gpu, catalog.gpus);
    linker.refer("nodes/" + node.id + ".json:/network", node.network, catalog.networks);
    linker.refer("nodes/" + node.id + ".json:/tray", node.tray, catalog.nodes);
  }
  for (const CloudPrice& price : catalog.prices.cloud)
    linker.refer("prices: " + price.provider + ' ' + price.instance, price.gpu, catalog.gpus);
  for (const CloudPrice& price : catalog.prices.history)
    linker.refer("prices: " + price.provider + ' ' + price.instance, price.gpu, catalog.gpus);
  for (const LaunchPrice& price : catalog.prices.launch)
    linker.refer("prices: launch", price.gpu, catalog.gpus);
  if (!catalog.all_models) return problems;
  for (const auto& [alias, id] : catalog.model_aliases)
    linker.refer("models/aliases.json:/" + alias, id, catalog.models);
  return problems;
}

}  // namespace shardwise
