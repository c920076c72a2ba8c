// One row of catalog/frameworks/ from its JSON, which is whole: what a row takes over from the one
// that it is "like" stands in it by then (framework_files.cpp).
#pragma once

#include "catalog/framework.hpp"
#include "catalog/json_reader.hpp"

namespace shardwise {

// Reads every key of the row's root object; what is wrong with one is told to the reader.
Framework read_framework(JsonReader& r);

}  // namespace shardwise
