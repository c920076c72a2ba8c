// Launch targets: one row for each framework that a plan can be written for. To add one: its file
// beside this one and its row in launch_target.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/launch/launch_job.hpp"

namespace shardwise {

struct LaunchTarget {
  std::string_view name;     // "deepspeed"
  std::string_view summary;  // what is written
  // The catalogued framework whose row forecasts what will be run.
  std::string_view (*framework)(Method method, int zero_stage);
  // Why nothing is written for this model, method or precision, whatever the plan.
  std::vector<std::string> (*workload_refusals)(const Workload& workload);
  // Why the target cannot say this plan; empty where it can.
  std::vector<std::string> (*plan_refusals)(const Question& question);
  LaunchFiles (*write)(const LaunchJob& job);  // REQUIRES no refusals of either kind
};

std::span<const LaunchTarget> launch_targets();
const LaunchTarget* launch_target_named(std::string_view name);  // nullptr: no such target
// The one that runs a catalogued framework; nullptr: none is written for it.
const LaunchTarget* target_running(std::string_view framework, Method method);

// What no target can say: sizes that mean nothing in this plan (a schedule without pipeline stages,
// ZeRO with one rank to shard over), which reading back would not find again. The target's own
// refusals of the plan come on top.
std::vector<std::string> plan_refusals(const LaunchTarget& target, const Question& question);

// The first of them; nothing where the target can say the plan.
std::optional<std::string> first_plan_refusal(const LaunchTarget& target, const Question& question);

// These, and before them those of the workload and the machines.
std::vector<std::string> launch_refusals(const LaunchTarget& target, const Question& question);

// Whether some target refuses nothing. Each runs a framework of its own, in which the plan may not
// fit (planner/answers/plan_starts.hpp).
bool takes_plan(const Question& question);

}  // namespace shardwise
