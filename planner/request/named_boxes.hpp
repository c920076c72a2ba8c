// GPUs that are named as alternatives: "2x3090 vs 4090".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

inline constexpr std::string_view between_boxes = " vs ";

// The GPUs on each side of "vs", "versus" or "or", in order; one where there is nothing to choose.
std::vector<std::string> named_boxes(std::string_view gpus);

}  // namespace shardwise
