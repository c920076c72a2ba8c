// The part of the catalog that one question asks about: the file of its model, and the rows of the
// frameworks that an answer may come to. All else is read whole, as by load_catalog.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/load.hpp"

namespace shardwise {

struct AskedOfCatalog {
  std::optional<std::string> model;                    // as load_catalog takes it
  std::optional<std::vector<std::string>> frameworks;  // ids; absent: all of them
};

// The id of the row that find_framework finds by its id, read off the files' names; they are not
// opened. Nothing where the name is another of a row's, or nobody's.
std::optional<std::string> find_framework_file(const std::filesystem::path& root,
                                               std::string_view name);

// Problems of files that are not read are not told.
Result<Catalog> load_asked(const std::filesystem::path& root, const AskedOfCatalog& asked);

// The rows of these ids and of the engines that they change to with ZeRO (Framework::with_zero). An
// answer may come to them, or may not: those that the catalog has no file of are left out.
Result<std::vector<Framework>> load_named_frameworks(const std::filesystem::path& root,
                                                     std::vector<std::string> ids);

}  // namespace shardwise
