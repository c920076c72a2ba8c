// Cards that are sold with several memories under one name: which of them a name without its size
// was taken to mean.
#pragma once

#include <string>
#include <vector>

#include "planner/facts.hpp"

namespace shardwise {

// A sentence for every part of `gpus` that leaves the size open where others of that name are sold.
std::vector<std::string> notes_of_sizes(const Catalog& catalog, const std::string& gpus);

}  // namespace shardwise
