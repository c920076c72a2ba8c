// `shardwise compare MODEL --gpus ... --plan pp=... --schedules`: every pipeline schedule under one
// plan, and each at its best within the same memory.
#pragma once

#include "planner/commands/compare.hpp"

namespace shardwise {

int compare_schedules_command(const Request& request, const Facts& facts, bool require_fit,
                              const Output& output);

}  // namespace shardwise
