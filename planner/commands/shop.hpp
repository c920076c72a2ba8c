// `shardwise shop MODEL --budget 3000`: buy which cards, or rent which machines?
#pragma once

#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

int shop(const Request& request, const Facts& facts, const Output& output);

}  // namespace shardwise
