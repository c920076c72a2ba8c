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

Result<std::vector<UnsupportedFramework>> load_unsupported_frameworks(
    const std::filesystem::path& root) {
  constexpr const char* file_name = "unsupported_frameworks.json";
  const auto document = parse_json_file(root / file_name, file_name);
  if (!document) return document.error();
  Problems problems;
  JsonReader file(*document, problems);
  JsonReader frameworks = file.object("frameworks");
  std::vector<UnsupportedFramework> rows;
  for (const std::string& name : frameworks.keys()) {
    JsonReader row = frameworks.object(name);
    rows.push_back({name, row.text("reason"), row.text("nearest")});
  }
  if (!problems.empty()) return problems;
  return rows;
}

const UnsupportedFramework* unsupported_row(const std::vector<UnsupportedFramework>& rows,
                                            std::string_view name) {
  const std::string text = normalised(name);
  for (const UnsupportedFramework& row : rows)
    if (names_it(text, normalised(row.name))) return &row;
  return nullptr;
}

std::optional<std::string> unsupported_framework(const std::filesystem::path& root,
                                                 std::string_view name) {
  const auto rows = load_unsupported_frameworks(root);
  const UnsupportedFramework* row = rows ? unsupported_row(*rows, name) : nullptr;
  if (row == nullptr) return std::nullopt;
  return "\"" + printable(name) + "\" is not supported: " + row->reason +
         "; the row that resembles it most is " + row->nearest;
}

}  // namespace shardwise
