// A search that asks only whether any plan is there that is not refused.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "planner/search/plan_search.hpp"
#include "planner/search/search_known.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/small_problems.hpp"

namespace shardwise {
namespace {

// Refuses plans by axes that sets of plans share and by one that only their stages tell.
PlanRefusal refuses_most(int problems) {
  return [problems](const Question& q) -> std::optional<std::string> {
    const ParallelPlan& p = q.plan;
    const bool refused = problems % 2 == 0 ? p.recompute != "full" || p.pipeline == 1
                                           : p.tensor * p.context > 1 || p.zero_stage < 3;
    if (refused) return "it is";
    return std::nullopt;
  };
}

}  // namespace

// Sets of which all is refused are left out before they are bounded: the best of what is left is
// the one that a search finds which bounds them first, or none as there. What an earlier search has
// bounded changes neither.
TEST_CASE("whether any plan is not refused is found without bounding those that are", "[search]") {
  std::mt19937 random(16);
  int none = 0, some = 0;
  for (int problems = 0; problems < 60; ++problems) {
    const SmallProblem problem = small_problem(random);
    const SearchSite site(problem.request, problem.request.methods.front(),
                          problem.request.clusters.front());
    INFO(problem.told);
    const Profile& profile = known_facts().profile;
    SearchWish wish;
    wish.objective = objective_named("time");
    wish.top = 1;
    wish.allow_tight = true;
    wish.refused = refuses_most(problems);
    const SearchResult all = search_plans({&site}, profile, wish);
    wish.known = std::make_shared<SearchKnown>(std::vector<const SearchSite*>{&site}, profile);
    const SearchResult known = search_plans({&site}, profile, wish);
    wish.only_whether = true;
    const SearchResult any = search_plans({&site}, profile, wish);
    CHECK(known.proof.too_large == all.proof.too_large);
    CHECK(known.proof.refused == all.proof.refused);
    CHECK(known.proof.bounded == all.proof.bounded);
    REQUIRE(known.best.size() == all.best.size());
    REQUIRE(any.best.size() == all.best.size());
    ++(all.best.empty() ? none : some);
    if (all.best.empty()) continue;
    CHECK(known.best.front().point == all.best.front().point);
    CHECK(any.best.front().point == all.best.front().point);
    CHECK(any.best.front().value == all.best.front().value);
  }
  CHECK(none > 5);
  CHECK(some > 5);
}

}  // namespace shardwise
