#include "planner/launch/config_reader.hpp"

#include <algorithm>

#include "catalog/json_document.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

void add_json(const JsonDocument& d, JsonIndex at, const std::string& path, ConfigEntries& to) {
  const JsonNode& node = d.at(at);
  if (node.kind == JsonKind::object || node.kind == JsonKind::array) {
    int place = 0;
    for (JsonIndex child = node.first_child; child != no_json; child = d.at(child).next_sibling) {
      const std::string key =
          node.kind == JsonKind::array ? std::to_string(place++) : std::string(d.key(child));
      add_json(d, child, path.empty() ? key : sentence(path, '.', key), to);
    }
    return;
  }
  ConfigValue value;
  if (const auto* flag = std::get_if<bool>(&node.value)) value = *flag;
  if (const auto* whole = std::get_if<std::int64_t>(&node.value)) value = *whole;
  if (const auto* real = std::get_if<double>(&node.value)) value = *real;
  if (const auto* text = std::get_if<JsonText>(&node.value)) value = std::string(d.text(*text));
  to.push_back({path, std::move(value), 0});
}

Problems checked(const ConfigEntries& entries, const std::string& name, bool last_one_holds) {
  if (entries.size() > most_config_entries)
    return {{ProblemKind::file, name,
             sentence("holds more than ", most_config_entries, " values, the most that is read")}};
  if (last_one_holds) return {};
  std::vector<std::string_view> paths;
  for (const ConfigEntry& e : entries) paths.push_back(e.path);
  std::sort(paths.begin(), paths.end());
  const auto twice = std::adjacent_find(paths.begin(), paths.end());
  if (twice == paths.end()) return {};
  return {{ProblemKind::file, name, sentence("the key ", printable(*twice), " is given twice")}};
}

}  // namespace

ConfigSyntax config_syntax(std::string_view file_name, std::string_view text) {
  if (file_name.ends_with(".json")) return ConfigSyntax::json;
  if (file_name.ends_with(".yaml") || file_name.ends_with(".yml")) return ConfigSyntax::yaml;
  if (file_name.ends_with(".toml")) return ConfigSyntax::toml;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return ConfigSyntax::json;
  return ConfigSyntax::arguments;
}

Result<ConfigEntries> read_json_config(const std::string& text, const std::string& name) {
  const auto document = parse_json(text, name);
  if (!document) return document.error();
  if (document->at(0).kind != JsonKind::object)
    return Problem{ProblemKind::file, name,
                   sentence("expected a JSON object, found ", document->shown(0))};
  ConfigEntries entries;
  add_json(*document, 0, "", entries);
  return entries;
}

Result<ConfigEntries> read_config(ConfigSyntax syntax, const std::string& text,
                                  const std::string& name) {
  Result<ConfigEntries> entries = syntax == ConfigSyntax::json   ? read_json_config(text, name)
                                  : syntax == ConfigSyntax::yaml ? read_yaml_config(text, name)
                                  : syntax == ConfigSyntax::toml ? read_toml_config(text, name)
                                                                 : read_argument_config(text, name);
  if (!entries) return entries;
  Problems problems = checked(*entries, name, syntax == ConfigSyntax::arguments);
  if (!problems.empty()) return problems;
  return entries;
}

}  // namespace shardwise
