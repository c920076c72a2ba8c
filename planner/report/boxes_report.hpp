// Several boxes side by side, as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "planner/answers/boxes_answer.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

// What a time is told for: "10,000 samples".
std::string told_amount(const ResolvedRequest& request);

// A line for each method and box: verdict, rate, time and rent, and below what that comes to.
std::string boxes_text(const BoxesAnswer& answer, std::optional<int> columns);

// `request`: as it was asked, with all its boxes.
Json boxes_json(const Request& request, const BoxesAnswer& answer);

}  // namespace shardwise
