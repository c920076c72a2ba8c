#include "planner/facts.hpp"

#include <utility>

namespace shardwise {

Result<Facts> load_facts(const std::filesystem::path& root,
                         const std::optional<std::string>& profile) {
  auto catalog = load_catalog(root);
  auto reading = load_reading(root);
  auto calibration =
      load_profile(profile.value_or((root / "profiles" / "published.json").string()));
  Problems problems;
  if (!catalog) add_problems(problems, catalog.error());
  if (!reading) add_problems(problems, reading.error());
  if (!calibration) add_problems(problems, calibration.error());
  if (!problems.empty()) return problems;
  return Facts{*std::move(catalog), *std::move(reading), *std::move(calibration)};
}

}  // namespace shardwise
