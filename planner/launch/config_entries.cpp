#include "planner/launch/config_entries.hpp"

#include <algorithm>

#include "catalog/json_document.hpp"

namespace shardwise {

std::string config_text(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return shown_number(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "null";
}

bool has_part(const ConfigEntries& entries, std::string_view path) {
  return std::any_of(entries.begin(), entries.end(), [&](const ConfigEntry& e) {
    return e.path.starts_with(path) && (e.path.size() == path.size() || e.path[path.size()] == '.');
  });
}

void put(ConfigEntries& to, std::string path, std::string_view value) {
  to.push_back({std::move(path), ConfigValue(std::string(value)), 0});
}
void put(ConfigEntries& to, std::string path, bool value) {
  to.push_back({std::move(path), ConfigValue(value), 0});
}
void put(ConfigEntries& to, std::string path, std::int64_t value) {
  to.push_back({std::move(path), ConfigValue(value), 0});
}
void put_number(ConfigEntries& to, std::string path, double value) {
  to.push_back({std::move(path), ConfigValue(value), 0});
}

}  // namespace shardwise
