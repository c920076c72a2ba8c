// The catalog's framework rows, by id and by the words that mean them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/framework.hpp"
#include "tests/catalog/loaded_catalog.hpp"

namespace shardwise {

inline const std::vector<Framework>& framework_rows() { return loaded_catalog().frameworks; }

inline const Framework& row_of(const std::string& id) {
  for (const Framework& f : framework_rows())
    if (f.id == id) return f;
  throw std::runtime_error("no framework " + id);
}

// The id of the row that is meant; empty where none is.
inline std::string meant(std::string_view text, std::string_view note = {}) {
  const Framework* f = framework_meant(framework_rows(), text, note);
  return f == nullptr ? "" : f->id;
}

}  // namespace shardwise
