// The words of a cluster before anything is looked up: "4 nodes of 8xA100-80GB" is four times
// eight of "a100-80gb".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

struct SpokenPart {
  std::optional<int> nodes;  // said as nodes: "4 nodes of", or the first of two counts
  std::optional<int> count;  // the count right before the name
  std::string name;          // as it was typed, trimmed
};

// Parts are joined by '+' or ','. A part that is itself one of `whole_names` is not split further.
// Counts are 1 to 1,000,000.
Result<std::vector<SpokenPart>> read_spoken_cluster(
    std::string_view text, const std::vector<std::string_view>& whole_names);

// The size of "24GB", "24 GiB", "24g" in GiB; nothing for other words.
std::optional<double> spoken_memory_gib(std::string_view name);

Problem bad_cluster(std::string_view text, const std::string& why);

}  // namespace shardwise
