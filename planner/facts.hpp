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
  Reading reading;  // all of it (load_facts), or load_training_words (calibrated_facts)
  Profile profile;
};

// `profile` is a path; absent: the catalog's published one.
Result<Facts> load_facts(const std::filesystem::path& root,
                         const std::optional<std::string>& profile);

}  // namespace shardwise
