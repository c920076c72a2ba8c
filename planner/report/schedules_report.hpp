// The answer of `compare --schedules`, for the terminal and as JSON.
#pragma once

#include <string>

#include "planner/forecast/schedule_comparison.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

std::string schedules_text(const ResolvedRequest& request, const ScheduleComparison& comparison);
Json schedules_json(const ResolvedRequest& request, const ScheduleComparison& comparison);

}  // namespace shardwise
