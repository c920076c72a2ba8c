// The files of frameworks/: all of them, or those of named rows.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/framework_row.hpp"
#include "catalog/json_inheritance.hpp"
#include "catalog/load.hpp"
#include "catalog/load_asked.hpp"
#include "catalog/load_folder.hpp"

namespace shardwise {
namespace {

// What a row says of itself: by which names it is meant and where it was read. The rest it may have
// from another, with the sources of its fields.
constexpr std::array<std::string_view, 15> never_inherited{
    "id",     "name",      "family",  "match",     "match_note", "match_trainer",
    "like",   "is_engine", "refines", "with_zero", "in_fp32",    "with_zero_alone",
    "source", "date",      "version"};

// Takes what the row leaves out from the one that it is "like", whose own row is whole.
Result<JsonDocument> parse_framework(const std::filesystem::path& path, std::string name) {
  auto row = parse_json_file(path, std::move(name));
  if (!row || row->at(0).kind != JsonKind::object) return row;
  const JsonIndex like = row->member(0, "like");
  if (like == no_json) return row;
  const auto wrong = [&](const std::string& expected) {
    return Problem{ProblemKind::file, row->place(like),
                   "expected " + expected + ", found " + row->shown(like)};
  };
  const auto id = row->as_text(like);
  const std::filesystem::path file = path.parent_path() / (std::string(id.value_or("")) + ".json");
  std::error_code unreadable;
  if (!id || !std::filesystem::is_regular_file(file, unreadable))
    return wrong("the id of another framework");
  const auto base = parse_json_file(file, "frameworks/" + file.filename().string());
  if (!base) return base;
  if (base->at(0).kind != JsonKind::object || base->member(0, "like") != no_json)
    return wrong("a framework whose row is like no other");
  const JsonIndex own = row->member(0, "field_sources"), theirs = base->member(0, "field_sources");
  const auto is_object = [](const JsonDocument& d, JsonIndex i) {
    return i != no_json && d.at(i).kind == JsonKind::object;
  };
  if (!is_object(*row, own)) return wrong("field_sources of what the row states itself beside it");
  if (is_object(*base, theirs)) {
    std::vector<std::string> stated;  // these have their own sources; a copy, as texts may move
    for (const JsonIndex member : row->children(0)) stated.emplace_back(row->key(member));
    const std::vector<std::string_view> otherwise(stated.begin(), stated.end());
    inherit_members(*row, own, *base, theirs, otherwise);
  }
  inherit_members(*row, 0, *base, 0, never_inherited);
  return row;
}

// What one row says of another: names that exist, and no word that two rows claim.
void check_across(const std::vector<Framework>& rows, Problems& problems) {
  std::map<std::string, std::string> claimed;  // word -> id
  for (const Framework& f : rows) {
    const std::string where = "frameworks/" + f.id + ".json:";
    const auto known = [&](const std::string& id) {
      return std::any_of(rows.begin(), rows.end(), [&](const Framework& o) { return o.id == id; });
    };
    if (!f.refines.empty() && !known(f.refines))
      problems.push_back({ProblemKind::file, where + "/refines", "no framework " + f.refines});
    if (!f.with_zero.empty() && !known(f.with_zero))
      problems.push_back({ProblemKind::file, where + "/with_zero", "no framework " + f.with_zero});
    if (!f.in_fp32.empty() && !known(f.in_fp32))
      problems.push_back({ProblemKind::file, where + "/in_fp32", "no framework " + f.in_fp32});
    for (const std::string& word : f.match) {
      const auto [at, fresh] = claimed.emplace(word, f.id);
      if (!fresh)
        problems.push_back(
            {ProblemKind::file, where + "/match", "\"" + word + "\" already names " + at->second});
    }
  }
}

}  // namespace

Result<std::vector<Framework>> load_frameworks(const std::filesystem::path& root) {
  auto rows = load_folder<Framework>(root, "frameworks", read_framework, parse_framework);
  if (!rows) return rows;
  Problems problems;
  check_across(*rows, problems);
  if (!problems.empty()) return problems;
  return rows;
}

Result<std::vector<Framework>> load_named_frameworks(const std::filesystem::path& root,
                                                     std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<std::filesystem::path> files;
  for (const std::string& id : ids) {
    std::filesystem::path file = root / "frameworks" / (id + ".json");
    std::error_code unreadable;  // told of where the file is opened
    if (std::filesystem::exists(file, unreadable) || unreadable) files.push_back(std::move(file));
  }
  auto rows = load_files<Framework>(files, "frameworks", read_framework, {}, parse_framework);
  if (!rows) return rows;
  std::vector<std::string> with_engines = ids;
  for (const Framework& f : *rows)
    if (!f.with_zero.empty() && !std::binary_search(ids.begin(), ids.end(), f.with_zero))
      with_engines.push_back(f.with_zero);
  return with_engines == ids ? rows : load_named_frameworks(root, std::move(with_engines));
}

}  // namespace shardwise
