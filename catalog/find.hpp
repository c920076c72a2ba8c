// Finding catalog entries by the names that people type. Case, spaces and underscores do not
// matter. An unknown name is one Problem{request} with up to three suggestions. The pointers live
// as long as the catalog.
#pragma once

#include <string_view>

#include "catalog/load.hpp"
#include "catalog/result.hpp"

namespace shardwise {

// By id, alias or name, with or without the maker ("NVIDIA GeForce RTX 4090", "Tesla T4") and the
// memory size ("L40S-48GB"); a remark in parentheses is ignored.
Result<const Gpu*> find_gpu(const Catalog& catalog, std::string_view name);
// How many of `gpu` are meant by one of `name`: an MI250X is two GPUs.
int gpus_of_one(const Gpu& gpu, std::string_view name);
Result<const Node*> find_node(const Catalog& catalog, std::string_view name);
// nullptr where there is none, for names that may well be something else.
const Node* node_named(const Catalog& catalog, std::string_view name);
Result<const Network*> find_network(const Catalog& catalog, std::string_view name);
// By id, alias, Hugging Face id or models/aliases.json; see model_name.hpp.
Result<const Transformer*> find_model(const Catalog& catalog, std::string_view name);
// By id, name or one of the `match` words, of which a version may follow ("TRL 0.9"). The free text
// of a run record is read by framework_meant (framework.hpp), which is not as strict.
Result<const Framework*> find_framework(const Catalog& catalog, std::string_view name);
// By its id alone, for rows that code names; nullptr where the catalog has no such row.
const Framework* framework_of_id(const Catalog& catalog, std::string_view id);

}  // namespace shardwise
