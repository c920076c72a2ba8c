#include <yaml-cpp/yaml.h>

#include <charconv>
#include <optional>

#include "catalog/json_document.hpp"
#include "planner/launch/config_reader.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

template <class Number>
std::optional<Number> whole_text_as(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 500_000: digits may be grouped in YAML 1.1.
std::optional<std::int64_t> grouped_number(std::string text) {
  if (text.empty() || text.front() < '1' || text.front() > '9') return std::nullopt;
  std::erase(text, '_');
  return whole_text_as<std::int64_t>(text);
}

// A plain scalar as PyYAML, which the frameworks read with, takes it: YAML 1.1 (yes and on are
// flags). 2e-05 without a point is a text there, which the frameworks turn into a number.
ConfigValue plain_value(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  for (const std::string_view yes : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
    if (text == yes) return true;
  for (const std::string_view no :
       {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
    if (text == no) return false;
  if (const auto whole = whole_text_as<std::int64_t>(text)) return *whole;
  if (const auto whole = grouped_number(text)) return *whole;
  const bool numeric = text.find_first_of("0123456789") != std::string::npos &&
                       text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (const auto real = numeric ? whole_text_as<double>(text) : std::nullopt) return *real;
  return text;
}

// Above every value stand `most_config_levels` lists at the most.
constexpr std::size_t most_nodes = most_config_levels * most_config_entries;

struct YamlReading {
  ConfigEntries entries;
  bool too_deep = false;
  std::size_t nodes = 0;

  // An anchor may stand inside itself, twice and with no value in it: what is walked is counted, as
  // well as what is found.
  void add(const YAML::Node& node, const std::string& path, int level) {
    too_deep |= level > most_config_levels;
    ++nodes;
    if (too_deep || nodes > most_nodes || entries.size() > most_config_entries) return;
    if (node.IsSequence() || node.IsMap()) {
      std::size_t place = 0;
      for (const auto& item : node) {
        const bool listed = node.IsSequence();
        const std::string key = listed ? std::to_string(place++) : item.first.Scalar();
        add(listed ? YAML::Node(item) : item.second, path.empty() ? key : sentence(path, '.', key),
            level + 1);
      }
      return;
    }
    ConfigValue value;
    if (node.IsScalar())
      value = node.Tag() == "!" ? ConfigValue(node.Scalar()) : plain_value(node.Scalar());
    entries.push_back({path, std::move(value), node.Mark().line + 1});
  }
};

}  // namespace

Result<ConfigEntries> read_yaml_config(const std::string& text, const std::string& name) {
  if (text.size() > json_max_bytes)
    return Problem{ProblemKind::file, name, "is larger than 16 MiB, the most that is read"};
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap())
      return Problem{ProblemKind::file, name, "expected a YAML mapping of keys to values"};
    YamlReading reading;
    reading.add(root, "", 0);
    if (reading.too_deep)
      return Problem{ProblemKind::file, name,
                     sentence("is nested more than ", most_config_levels, " levels deep")};
    if (reading.nodes > most_nodes)
      return Problem{ProblemKind::file, name,
                     sentence("holds more than ", most_nodes, " lists, the most that is read")};
    return std::move(reading.entries);
  } catch (const YAML::Exception& e) {
    return Problem{ProblemKind::file, name,
                   sentence("is not valid YAML: line ", e.mark.line + 1, ": ", e.msg)};
  }
}

}  // namespace shardwise
