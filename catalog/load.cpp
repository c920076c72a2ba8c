#include "catalog/load.hpp"

#include <future>

#include "catalog/catalog_links.hpp"
#include "catalog/load_asked.hpp"
#include "catalog/names.hpp"
#include "catalog/text_file.hpp"

namespace shardwise {
namespace {

// Moves a loaded kind to its place, or its problems to theirs.
template <class Kind>
void take(Result<Kind> loaded, Kind& place, Problems& problems) {
  if (loaded)
    place = *std::move(loaded);
  else
    add_problems(problems, loaded.error());
}

// The models that a question needs, and what they are called besides.
Problems load_named_models(const std::filesystem::path& root,
                           const std::optional<std::string>& name, Catalog& catalog) {
  Problems problems;
  take(load_model_aliases(root), catalog.model_aliases, problems);
  const auto id = name ? find_model_file(root, *name, catalog.model_aliases) : std::nullopt;
  catalog.all_models = !id;
  if (!id) {
    take(load_models(root), catalog.models, problems);
  } else {
    catalog.models.resize(1);
    take(load_model(root, *id), catalog.models.front(), problems);
  }
  return problems;
}

}  // namespace

Result<Catalog> load_catalog(const std::filesystem::path& root,
                             const std::optional<std::string>& model) {
  return load_asked(root, {model, std::nullopt});
}

std::optional<std::string> find_framework_file(const std::filesystem::path& root,
                                               std::string_view name) {
  Problems unlisted;  // told of where the folder is read
  for (const std::filesystem::path& file : json_files(root / "frameworks", unlisted))
    if (std::string id = file.stem().string(); same_name(id, name)) return id;
  return std::nullopt;
}

Result<Catalog> load_asked(const std::filesystem::path& root, const AskedOfCatalog& asked) {
  Catalog catalog;
  Problems problems, of_models;
  catalog.root = root;
  // Side by side; what is found is put together in one order all the same.
  auto models = std::async(std::launch::async,
                           [&] { of_models = load_named_models(root, asked.model, catalog); });
  auto frameworks = std::async(std::launch::async, [&] {
    return asked.frameworks ? load_named_frameworks(root, *asked.frameworks)
                            : load_frameworks(root);
  });
  auto nodes = std::async(std::launch::async, load_nodes, root);
  auto prices = std::async(std::launch::async, load_prices, root);
  take(load_gpus(root), catalog.gpus, problems);
  take(nodes.get(), catalog.nodes, problems);
  take(load_networks(root), catalog.networks, problems);
  take(prices.get(), catalog.prices, problems);
  models.get();
  add_problems(problems, of_models);
  take(frameworks.get(), catalog.frameworks, problems);
  if (problems.empty()) problems = check_links(catalog);
  if (!problems.empty()) return problems;
  return catalog;
}

}  // namespace shardwise
