// The plan that is chosen for the first method and cluster of a request.
#pragma once

#include <utility>

#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

inline ChosenPlan chosen(const Request& request) {
  const ResolvedRequest r = resolved(request);
  auto plan = choose_plan(r, r.methods.front(), r.clusters.front());
  REQUIRE(plan);
  return *std::move(plan);
}

}  // namespace shardwise
