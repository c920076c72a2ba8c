// The catalog: everything that was read from the data files, and the one function that reads it.
//
//   root/devices/*.json   one GPU each         root/models/*.json      one model each, aliases.json
//   root/nodes/*.json     one node type each   root/frameworks/*.json  one framework each
//   root/networks/*.json  one network each     root/prices/*.json      tables of prices
//
// Loading reports the problems of every file at once, then those between files (a node that names
// a GPU nobody catalogued, one alias for two entries).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/framework.hpp"
#include "catalog/gpu.hpp"
#include "catalog/model_name.hpp"
#include "catalog/prices.hpp"
#include "catalog/result.hpp"
#include "catalog/transformer.hpp"

namespace shardwise {

struct Catalog {
  std::vector<Gpu> gpus;  // every vector in order of id
  std::vector<Node> nodes;
  std::vector<Network> networks;
  Prices prices;
  std::vector<Transformer> models;
  bool all_models = true;  // false where only the one that was asked for is read
  ModelAliases model_aliases;
  std::vector<Framework> frameworks;
  std::filesystem::path root;
};

// `model`: the name that a question gives its one model. Where it is an id or stands in
// models/aliases.json, the file of that model is the only one read of models/.
Result<Catalog> load_catalog(const std::filesystem::path& root,
                             const std::optional<std::string>& model = std::nullopt);

// One kind each; `root` is the catalog's root.
Result<std::vector<Gpu>> load_gpus(const std::filesystem::path& root);
Result<std::vector<Node>> load_nodes(const std::filesystem::path& root);
Result<std::vector<Network>> load_networks(const std::filesystem::path& root);
Result<Prices> load_prices(const std::filesystem::path& root);
Result<std::vector<Transformer>> load_models(const std::filesystem::path& root);
Result<Transformer> load_model(const std::filesystem::path& root, const std::string& id);
// What model_id_meant finds among the files' names; they are not opened.
std::optional<std::string> find_model_file(const std::filesystem::path& root, std::string_view name,
                                           const ModelAliases& aliases);
Result<ModelAliases> load_model_aliases(const std::filesystem::path& root);
Result<std::vector<Framework>> load_frameworks(const std::filesystem::path& root);

}  // namespace shardwise
