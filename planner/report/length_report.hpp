// What the real lengths of samples make of a step, as text below an answer and as the "lengths" of
// its JSON.
#pragma once

#include <string>

#include "planner/answers/length_outlook.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string length_text(const LengthOutlook& outlook, const Workload& workload);
Json length_json(const LengthOutlook& outlook);

}  // namespace shardwise
