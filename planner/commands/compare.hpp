// `shardwise compare MODEL --gpus ... --plan A --plan B ...`: plans side by side.
#pragma once

#include "planner/commands/output.hpp"
#include "planner/facts.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

int compare(const Request& request, const Facts& facts, const Output& output);

}  // namespace shardwise
