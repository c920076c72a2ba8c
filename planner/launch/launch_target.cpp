#include "planner/launch/launch_target.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "planner/launch/plan_refusal.hpp"
#include "planner/launch/targets.hpp"
#include "simulator/packed_weights.hpp"

namespace shardwise {
namespace {

const std::array<LaunchTarget, 6>& targets() {
  static const std::array<LaunchTarget, 6> rows{torchrun_target(),  accelerate_target(),
                                                deepspeed_target(), torchtitan_target(),
                                                megatron_target(),  axolotl_target()};
  return rows;
}

}  // namespace

std::span<const LaunchTarget> launch_targets() { return targets(); }

const LaunchTarget* launch_target_named(std::string_view name) {
  for (const LaunchTarget& target : launch_targets())
    if (target.name == name) return &target;
  return nullptr;
}

const LaunchTarget* target_running(std::string_view framework, Method method) {
  for (const LaunchTarget& target : launch_targets())
    for (const int stage : {0, 1, 2, 3})
      if (target.framework(method, stage) == framework) return &target;
  return nullptr;
}

namespace {

// Of every target.
Refusals shared_refusals(const Question& q) {
  Refusals refusals = meaningless_sizes(q.plan, q.workload);
  refuse_unwritten(refusals, q.plan);
  const std::string_view whole = why_frozen_stay_whole(q.workload, q.plan);
  refuse_if(refusals, !whole.empty(), whole);
  return refusals;
}

}  // namespace

std::vector<std::string> plan_refusals(const LaunchTarget& target, const Question& q) {
  Refusals refusals = shared_refusals(q);
  const Refusals own = target.plan_refusals(q);
  refusals.insert(refusals.end(), own.begin(), own.end());
  return refusals;
}

// A search asks it of millions of plans.
std::optional<std::string> first_plan_refusal(const LaunchTarget& target, const Question& q) {
  Refusals reasons = shared_refusals(q);
  if (reasons.empty()) reasons = target.plan_refusals(q);
  if (reasons.empty()) return std::nullopt;
  return std::move(reasons.front());
}

std::vector<std::string> launch_refusals(const LaunchTarget& target, const Question& q) {
  Refusals refusals = target.workload_refusals(q.workload);
  refuse_machines(refusals, q.cluster);
  const Refusals of_plan = plan_refusals(target, q);
  refusals.insert(refusals.end(), of_plan.begin(), of_plan.end());
  return refusals;
}

bool takes_plan(const Question& q) {
  return std::any_of(targets().begin(), targets().end(), [&](const LaunchTarget& target) {
    return launch_refusals(target, q).empty();
  });
}

}  // namespace shardwise
