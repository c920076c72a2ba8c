// The parts that JSON answers share: a forecast, a plan, what it rests on.
// Keys carry their unit; GiB = 2^30 bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/forecast/forecast.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

using Json = nlohmann::ordered_json;

double json_gib(Bytes bytes);      // rounded to a thousandth, so that equal answers are equal bytes
double json_number(double value);  // six significant digits

// Adds "plan_from": what was made of each file that said a plan; nothing where there was none.
void add_plan_files(Json& to, const ResolvedRequest& request);
// What one answer rests on, with the defaults of its framework: keys as in a request.
Json settings_json(const Question& question);
Json workload_json(const Workload& workload);           // the part that no plan decides
Json step_time_json(const Interval<Seconds>& step);     // {low, expected, high}
Json memory_json(const MemoryFigures& figures);         // {allocated, reserved, device}
Json breakdown_json(const MemoryBreakdown& breakdown);  // category -> GiB, empty ones left out
// Where the step goes; the optimizer apart from what each microbatch costs.
Json step_breakdown_json(StepBreakdown breakdown);
// Adds "host_ram_gib", of each node the most that training or loading takes, and both of them;
// "drives_gib", what lies on its drives, where anything does.
void add_host_ram(Json& to, const HostMemory& host);
Json stage_json(const StageForecast& stage);
std::string_view trust_name(Trust trust);

}  // namespace shardwise
