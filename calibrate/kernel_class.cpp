#include "calibrate/kernel_class.hpp"

#include <algorithm>

#include "calibrate/log_text.hpp"
#include "catalog/json_reader.hpp"

namespace shardwise {

Result<std::vector<KernelClass>> load_kernel_classes(const std::filesystem::path& root) {
  const auto document = parse_json_file(root / "kernel_classes.json", "kernel_classes.json");
  if (!document) return document.error();
  Problems problems;
  JsonReader r(*document, problems);
  std::vector<KernelClass> rows;
  for (JsonReader& row : r.objects("classes")) {
    rows.push_back({row.text("class"), row.texts("words")});
    if (rows.back().words.empty()) row.problem("words", "at least one word");
    row.finish();
  }
  r.provenance();
  r.finish();
  if (!problems.empty()) return problems;
  return rows;
}

std::string_view kernel_class(const std::vector<KernelClass>& rows, std::string_view kernel) {
  const std::string low = lowered(kernel);
  for (const KernelClass& row : rows)
    if (std::any_of(row.words.begin(), row.words.end(),
                    [&](const std::string& word) { return low.find(word) != low.npos; }))
      return row.name;
  return "other";
}

}  // namespace shardwise
