#include "tests/planner/launch_schema.hpp"

#include <algorithm>

#include "catalog/json_document.hpp"
#include "catalog/require.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

bool is_of(const std::string& type, const ConfigValue& value) {
  if (type == "any") return true;
  if (type == "boolean") return std::holds_alternative<bool>(value);
  if (type == "integer") return std::holds_alternative<std::int64_t>(value);
  if (type == "number")
    return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
  if (type == "text") return std::holds_alternative<std::string>(value);
  return false;
}

}  // namespace

LaunchSchema::LaunchSchema(const std::string& name) : typed_(name != "megatron") {
  const auto document = parse_json_file(
      source_dir() + "/tests/planner/launch_schemas/" + name + ".json", name + ".json");
  require(static_cast<bool>(document), "the schemas of the tests are JSON");
  const JsonDocument& d = *document;
  for (const JsonIndex key : d.children(d.member(0, "keys"))) {
    std::vector<std::string> allowed;
    if (d.at(key).kind == JsonKind::array)
      for (const JsonIndex value : d.children(key))
        allowed.push_back("=" + std::string(*d.as_text(value)));
    else
      allowed.emplace_back(*d.as_text(key));
    keys_.emplace_back(std::string(d.key(key)), std::move(allowed));
  }
}

std::vector<std::string> LaunchSchema::breaches(const ConfigEntries& entries) const {
  std::vector<std::string> found;
  for (const ConfigEntry& e : entries) {
    const auto key = std::find_if(keys_.begin(), keys_.end(), [&](const auto& one) {
      return one.first == e.path || (one.first.ends_with(".*") &&
                                     e.path.starts_with(one.first.substr(0, one.first.size() - 1)));
    });
    const std::string text = config_text(e.value);
    if (key == keys_.end()) {
      found.push_back(e.path + " is not in the schema");
      continue;
    }
    // Null is written where a class knows None alone beside the type (RewardConfig).
    const bool nothing = std::holds_alternative<std::monostate>(e.value);
    const bool right =
        nothing ||
        std::any_of(key->second.begin(), key->second.end(), [&](const std::string& type) {
          if (type.starts_with('=')) return type.substr(1) == text;
          return is_of(type, e.value) || (!typed_ && type == "text") ||
                 (!typed_ && type == "number" && is_of("integer", e.value));
        });
    if (!right) found.push_back(e.path + " = " + text + " is not what the schema allows");
  }
  return found;
}

}  // namespace shardwise
