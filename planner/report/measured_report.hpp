// A measured step or peak memory beside its forecast, as lines below an answer and as the
// "measured" and "measured_memory" of its JSON.
#pragma once

#include <string>

#include "planner/answers/measured_memory.hpp"
#include "planner/answers/measured_step.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string measured_text(const MeasuredStep& measured);
Json measured_json(const MeasuredStep& measured);
std::string measured_text(const MeasuredMemory& measured);
Json measured_json(const MeasuredMemory& measured);

}  // namespace shardwise
