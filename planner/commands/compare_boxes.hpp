// `shardwise compare MODEL --gpus 2x3090 --gpus 4090`: which box does it, and how fast?
#pragma once

#include "planner/commands/compare.hpp"

namespace shardwise {

// REQUIRES a request whose GPUs are several boxes (named_boxes.hpp).
int compare_boxes_command(const Request& request, const Facts& facts, bool require_fit,
                          const Output& output);

}  // namespace shardwise
