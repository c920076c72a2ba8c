// The catalog of the source tree, loaded once for all tests of this folder.
#pragma once

#include <filesystem>
#include <stdexcept>

#include "catalog/load.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

inline const Catalog& loaded_catalog() {
  static const Catalog catalog = [] {
    auto loaded = load_catalog(std::filesystem::path(source_dir()) / "catalog");
    if (loaded) return *std::move(loaded);
    std::string text;
    for (const Problem& p : loaded.error()) text += p.where + ": " + p.what + '\n';
    throw std::runtime_error(text);
  }();
  return catalog;
}

}  // namespace shardwise
