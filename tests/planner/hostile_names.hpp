// Names that somebody may give a model or a GPU to make a page do what they want, or that are
// merely awkward: hostile_names.json, which the browser test reads too. Forms after the OWASP
// filter-evasion list, written out here.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/source_dir.hpp"

namespace shardwise {

// A name is a text, or {before, repeat, times}: a text and another one many times over.
inline const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> names = [] {
    std::ifstream file(source_dir() + "/tests/planner/hostile_names.json");
    std::vector<std::string> list;
    for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
      if (entry.is_string()) {
        list.push_back(entry);
        continue;
      }
      std::string name = entry.at("before");
      for (int i = 0; i < entry.at("times").get<int>(); ++i) name += entry.at("repeat");
      list.push_back(name);
    }
    return list;
  }();
  return names;
}

}  // namespace shardwise
