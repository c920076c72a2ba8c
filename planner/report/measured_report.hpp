// A measured step beside its forecast, as lines below an answer and as the "measured" of its JSON.
#pragma once

#include <string>

#include "planner/answers/measured_step.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string measured_text(const MeasuredStep& measured);
Json measured_json(const MeasuredStep& measured);

}  // namespace shardwise
