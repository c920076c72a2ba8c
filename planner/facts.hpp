// Facts: everything that a question may lean on, loaded once: the catalog, what free text means,
// and the calibration.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "catalog/load.hpp"
#include "catalog/profile.hpp"
#include "catalog/reading.hpp"

namespace shardwise {

struct Facts {
  Catalog catalog;
  Reading reading;  // of a question: load_spoken_words
  Profile profile;
};

// `profile` is a path; absent: the catalog's published one.
Result<Facts> load_facts(const std::filesystem::path& root,
                         const std::optional<std::string>& profile);

}  // namespace shardwise
