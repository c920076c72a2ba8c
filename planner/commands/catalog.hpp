// `shardwise catalog list KIND | show NAME | check | pages DIR`: what the catalog holds, whether it
// loads, and the same as pages to read.
#pragma once

#include <filesystem>
#include <string>

#include "planner/report/output.hpp"

namespace shardwise {

struct CatalogQuestion {
  std::string verb;     // "list" | "show" | "check" | "pages"
  std::string subject;  // list: gpus, nodes, networks, models, frameworks, prices; show: a name;
                        // pages: a folder
};

int catalog(const CatalogQuestion& question, const std::filesystem::path& root,
            const Output& output);

}  // namespace shardwise
