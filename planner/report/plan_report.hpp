// The answer of `plan` as text and as JSON (docs/schemas/plan.schema.json).
#pragma once

#include "planner/answers/plan_answer.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

// `columns`: of a terminal; absent: lines may be of any length.
std::string plan_text(const PlanAnswer& answer, std::optional<int> columns = std::nullopt);
Json plan_json(const PlanAnswer& answer);

}  // namespace shardwise
