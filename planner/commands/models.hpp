// `shardwise models --gpus ...`: which of the catalogued models will run here, and how fast?
// `shardwise models MODEL`: how many of each usual card does it take?
#pragma once

#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

int models(const Request& request, const Facts& facts, const Output& output);

}  // namespace shardwise
