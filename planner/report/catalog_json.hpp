// Entries of the catalog as JSON: the figures of the tables under keys that carry their unit, what
// is not known left out.
#pragma once

#include <string_view>

#include "catalog/load.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

Json entry_json(const Gpu& gpu);
Json entry_json(const Node& node);
Json entry_json(const Network& network);
Json entry_json(const Transformer& model);
Json entry_json(const Framework& framework);
Json entry_json(const CloudPrice& price);

// All entries of a kind of catalog_listings(), in the order of its table; null: no such kind.
Json entries_json(const Catalog& catalog, std::string_view kind);

// Where an entry was read: "source", "date" and "field_sources", those of single fields.
void add_provenance(Json& to, const Provenance& provenance);

}  // namespace shardwise
