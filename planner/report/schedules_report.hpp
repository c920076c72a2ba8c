// The answer of `compare --schedules`, for the terminal and as JSON.
#pragma once

#include <string>

#include "planner/report/json_parts.hpp"
#include "planner/schedule_comparison.hpp"

namespace shardwise {

std::string schedules_text(const ResolvedRequest& request, const ScheduleComparison& comparison);
Json schedules_json(const ResolvedRequest& request, const ScheduleComparison& comparison);

}  // namespace shardwise
