// The answer of `plan` as text and as JSON (docs/schemas/plan.schema.json).
#pragma once

#include "planner/report/json_parts.hpp"
#include "planner/search/plan_answer.hpp"

namespace shardwise {

std::string plan_text(const PlanAnswer& answer);
Json plan_json(const PlanAnswer& answer);

}  // namespace shardwise
