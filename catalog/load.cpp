#include "catalog/load.hpp"

#include <future>

#include "catalog/catalog_links.hpp"

namespace shardwise {
namespace {

// Moves a loaded kind to its place, or its problems to theirs.
template <class Kind>
void take(Result<Kind> loaded, Kind& place, Problems& problems) {
  if (loaded)
    place = *std::move(loaded);
  else
    problems.insert(problems.end(), loaded.error().begin(), loaded.error().end());
}

}  // namespace

Result<Catalog> load_catalog(const std::filesystem::path& root) {
  Catalog catalog;
  Problems problems;
  catalog.root = root;
  // About a third each of all that is to be read; what is found is put together in one order all
  // the same.
  auto models = std::async(std::launch::async, load_models, root);
  auto frameworks = std::async(std::launch::async, load_frameworks, root);
  take(load_gpus(root), catalog.gpus, problems);
  take(load_nodes(root), catalog.nodes, problems);
  take(load_networks(root), catalog.networks, problems);
  take(load_prices(root), catalog.prices, problems);
  take(models.get(), catalog.models, problems);
  take(load_model_aliases(root), catalog.model_aliases, problems);
  take(frameworks.get(), catalog.frameworks, problems);
  if (problems.empty()) problems = check_links(catalog);
  if (!problems.empty()) return problems;
  return catalog;
}

}  // namespace shardwise
