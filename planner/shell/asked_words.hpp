// The words that can stand where somebody is typing, asked when completing: names that the catalog
// holds and the parts of a plan. The rules of where a name begins are here, once for every shell:
//
//   gpus    2xrtx  ->  2xrtx-3090, 2xrtx-4090 ...      rtx-3090+2xa1  ->  rtx-3090+2xa100-80gb ...
//   plans   dp=8,z ->  dp=8,zero=                      dp=8,schedule=z  ->  dp=8,schedule=zb-h1 ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/load.hpp"

namespace shardwise {

std::vector<std::string_view> asked_subjects();  // models, gpus, ...

// Every continuation of `word`, whole words in a fixed order. Case and dashes do not matter.
// REQUIRES: subject is one of asked_subjects().
std::vector<std::string> asked_words(std::string_view subject, std::string_view word,
                                     const Catalog& catalog);

}  // namespace shardwise
