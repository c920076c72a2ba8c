#include "catalog/unsupported_framework.hpp"

#include "catalog/json_document.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"

namespace shardwise {
namespace {

bool names_it(const std::string& text, const std::string& known) {
  if (!text.starts_with(known)) return false;
  return text.size() == known.size() || text[known.size()] == '-';
}

}  // namespace

std::optional<std::string> unsupported_framework(const std::filesystem::path& root,
                                                 std::string_view name) {
  constexpr const char* file_name = "unsupported_frameworks.json";
  const auto document = parse_json_file(root / file_name, file_name);
  if (!document) return std::nullopt;
  Problems problems;
  JsonReader file(*document, problems);
  JsonReader frameworks = file.object("frameworks");
  const std::string text = normalised(name);
  for (const std::string& known : frameworks.keys()) {
    if (!names_it(text, normalised(known))) continue;
    JsonReader row = frameworks.object(known);
    return "\"" + printable(name) + "\" is not supported: " + row.text("reason") +
           "; the row that resembles it most is " + row.text("nearest");
  }
  return std::nullopt;
}

}  // namespace shardwise
