// The catalog as tables, one for each kind of entry: what `shardwise catalog list` prints and what
// the pages in docs/catalog hold.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "catalog/load.hpp"
#include "planner/report/table.hpp"

namespace shardwise {

struct CatalogListing {
  std::string_view name;  // "gpus"
  Table (*table)(const Catalog& catalog);
  std::vector<const Provenance*> (*sources)(const Catalog& catalog);  // of each row, in order
};

std::span<const CatalogListing> catalog_listings();

Table gpu_table(const Catalog& catalog);
Table node_table(const Catalog& catalog);
Table network_table(const Catalog& catalog);
Table model_table(const Catalog& catalog);
Table framework_table(const Catalog& catalog);
Table price_table(const Catalog& catalog);

}  // namespace shardwise
