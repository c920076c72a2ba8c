// What a model takes, as text and as JSON.
#pragma once

#include "planner/answers/requirements.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

// Tables of the numbers, and of what a GPU holds and how long 1,000 samples take there.
std::string requirements_text(const RequirementsAnswer& answer, std::optional<int> columns);

Json requirements_json(const RequirementsAnswer& answer);

}  // namespace shardwise
