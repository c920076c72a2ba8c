#include "planner/facts.hpp"

#include <utility>

#include "catalog/device_profile.hpp"

namespace shardwise {
namespace {

void add(Problems& to, const Problems& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

Result<Facts> load_facts(const std::filesystem::path& root,
                         const std::optional<std::string>& profile) {
  auto catalog = load_catalog(root);
  auto reading = load_reading(root);
  Problems problems;
  if (!catalog) add(problems, catalog.error());
  if (!reading) add(problems, reading.error());
  if (!problems.empty()) return problems;
  auto calibration = load_calibration(*catalog, profile);
  if (!calibration) return calibration.error();
  return Facts{*std::move(catalog), *std::move(reading), *std::move(calibration)};
}

}  // namespace shardwise
