// How far a method goes (planner/answers/reach.hpp), as lines and as JSON.
#pragma once

#include <string>

#include "planner/answers/reach.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string reach_text(const Reach& reach, const ResolvedRequest& request);
Json reach_json(const Reach& reach);

}  // namespace shardwise
