#include <toml++/toml.h>

#include "planner/launch/config_reader.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

void add(const toml::node& node, const std::string& path, ConfigEntries& to) {
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      add(value, path.empty() ? std::string(key.str()) : sentence(path, '.', key.str()), to);
    return;
  }
  if (const auto* list = node.as_array()) {
    for (std::size_t i = 0; i < list->size(); ++i) add((*list)[i], sentence(path, '.', i), to);
    return;
  }
  ConfigValue value;
  if (const auto* flag = node.as_boolean()) value = flag->get();
  if (const auto* whole = node.as_integer()) value = whole->get();
  if (const auto* real = node.as_floating_point()) value = real->get();
  if (const auto* text = node.as_string()) value = text->get();
  to.push_back({path, std::move(value), static_cast<int>(node.source().begin.line)});
}

}  // namespace

Result<ConfigEntries> read_toml_config(const std::string& text, const std::string& name) {
  try {
    const toml::table root = toml::parse(text, name);
    ConfigEntries entries;
    add(root, "", entries);
    return entries;
  } catch (const toml::parse_error& e) {
    return Problem{
        ProblemKind::file, name,
        sentence("is not valid TOML: line ", e.source().begin.line, ": ", e.description())};
  }
}

}  // namespace shardwise
