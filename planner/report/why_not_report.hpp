// "Why not that plan?", as text below an answer and as the "why_not" of its JSON.
#pragma once

#include <string>
#include <vector>

#include "planner/advice/why_not.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string why_not_text(const std::vector<WhyNot>& list);
Json why_not_json(const std::vector<WhyNot>& list);

// Of every plan that the request asks "why not?" of.
std::vector<WhyNot> why_not_asked(const ResolvedRequest& request, const ReferencePlan& reference);

}  // namespace shardwise
