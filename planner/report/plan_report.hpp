// The answer of `plan` as text and as JSON (docs/schemas/plan.schema.json).
#pragma once

#include "planner/report/json_parts.hpp"
#include "planner/search/plan_answer.hpp"

namespace shardwise {

// `columns`: of a terminal; absent: lines may be of any length.
std::string plan_text(const PlanAnswer& answer, std::optional<int> columns = std::nullopt);
Json plan_json(const PlanAnswer& answer);

}  // namespace shardwise
