// An explanation, as text below an answer and as the "explain" of its JSON.
#pragma once

#include <string>

#include "planner/forecast/explanation.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string explanation_text(const Explanation& explanation);

// {bound: {by, share, parts_s}, figures: [{key, what, value, unit, formula, inputs}]}
Json explanation_json(const Explanation& explanation);

}  // namespace shardwise
