// The answer of `fit` as one JSON document (keys: docs of the `fit --json` contract).
#pragma once

#include "planner/answers/fit_answer.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

Json fit_json(const ResolvedRequest& request, const FitAnswers& answers);

}  // namespace shardwise
