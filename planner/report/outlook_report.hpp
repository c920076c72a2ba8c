// A run's outlook, as text below an answer and as the "outlook" of its JSON.
#pragma once

#include "planner/answers/run_outlook.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string outlook_text(const RunOutlook& outlook);
Json outlook_json(const RunOutlook& outlook);
std::string shown_dollars(UsDollars amount);  // "$1,234", "$12.30"

}  // namespace shardwise
