// The files of frameworks/: all of them, or those of named rows.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "catalog/framework_row.hpp"
#include "catalog/load.hpp"
#include "catalog/load_asked.hpp"
#include "catalog/load_folder.hpp"

namespace shardwise {
namespace {

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
  auto rows = load_folder<Framework>(root, "frameworks", read_framework);
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
  auto rows = load_files<Framework>(files, "frameworks", read_framework);
  if (!rows) return rows;
  std::vector<std::string> with_engines = ids;
  for (const Framework& f : *rows)
    if (!f.with_zero.empty() && !std::binary_search(ids.begin(), ids.end(), f.with_zero))
      with_engines.push_back(f.with_zero);
  return with_engines == ids ? rows : load_named_frameworks(root, std::move(with_engines));
}

}  // namespace shardwise
