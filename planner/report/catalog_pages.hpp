// The catalog as pages in Markdown, docs/catalog/*.md: a table for each kind of entry, each row
// with a link to where it was read. `shardwise catalog pages DIR` writes them.
#pragma once

#include <string>
#include <vector>

#include "catalog/device_profile.hpp"
#include "catalog/load.hpp"
#include "planner/report/table.hpp"

namespace shardwise {

struct CatalogPage {
  std::string file;         // "gpus.md"
  std::size_t entries = 0;  // rows of its first table
  std::string text;
};

std::vector<CatalogPage> catalog_pages(const Catalog& catalog, const Calibration& calibration);

// Profiles of single machines, in order of name, and a row for each.
std::vector<const DeviceProfile*> profiles_by_name(const Calibration& calibration);
Table profile_table(const Calibration& calibration);

// A source as catalog files write it, with links: "owner/repository:path@commit" leads to that file
// at that commit, "arXiv 1234.56789" to the paper.
std::string linked_source(const std::string& source);

}  // namespace shardwise
