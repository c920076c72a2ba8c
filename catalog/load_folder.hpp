// Reading a folder of the catalog: one JSON file per entry, named after the entry's id.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catalog/json_reader.hpp"
#include "catalog/result.hpp"

namespace shardwise {

// A file of the folder as it stands there. Problems call it by `name`, "gpus/rtx-4090.json".
inline Result<JsonDocument> parse_entry(const std::filesystem::path& path, std::string name) {
  return parse_json_file(path, std::move(name));
}

// `read` makes an Entry (which has an `id`) of one file's root object, which `parse` has from its
// path and name. Entries come in order of id. Problems of all files are reported together, those of
// listing the `folder` before them.
template <class Entry, class Read>
Result<std::vector<Entry>> load_files(const std::vector<std::filesystem::path>& paths,
                                      const std::string& folder, Read read, Problems problems = {},
                                      decltype(&parse_entry) parse = parse_entry) {
  std::vector<Entry> entries;
  for (const std::filesystem::path& path : paths) {
    const std::string name = folder + '/' + path.filename().string();
    const Result<JsonDocument> document = parse(path, name);
    if (!document) {
      add_problems(problems, document.error());
      continue;
    }
    JsonReader reader(*document, problems);
    Entry entry = read(reader);
    reader.finish();
    if (!entry.id.empty() && entry.id != path.stem().string())
      reader.problem("id", "the name of the file without .json");
    entries.push_back(std::move(entry));
  }
  if (!problems.empty()) return problems;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return entries;
}

template <class Entry, class Read>
Result<std::vector<Entry>> load_folder(const std::filesystem::path& root, const std::string& folder,
                                       Read read, decltype(&parse_entry) parse = parse_entry) {
  Problems problems;
  const std::vector<std::filesystem::path> paths = json_files(root / folder, problems);
  return load_files<Entry>(paths, folder, read, std::move(problems), parse);
}

}  // namespace shardwise
