// plan on a box whose cards differ in memory: layers are dealt as fit deals them.
#include <optional>

#include "planner/answers/fit_answer.hpp"
#include "planner/search/plan_search.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// The least time of all legal plans that fit with room to spare, each forecast whole.
std::optional<Seconds> least_of_all(const SearchSite& site, int& uneven) {
  std::optional<Seconds> least;
  for (PlanPoint outer : site.space.outer_points())
    for (std::size_t i = 0; i < site.space.values(PlanAxis::recompute); ++i) {
      outer[static_cast<std::size_t>(PlanAxis::recompute)] = static_cast<std::uint16_t>(i);
      site.space.each_pipeline(outer, [&](const PlanPoint&, const ParallelPlan& p) {
        uneven += !p.layers_per_stage.empty();
        const auto f = forecast({site.space.workload(p), p, site.cluster}, known_facts().profile);
        REQUIRE(f);
        if (f->verdict == Verdict::fits && (!least || f->step_time.expected < *least))
          least = f->step_time.expected;
      });
    }
  return least;
}

}  // namespace

// 24 and 12 GB: a third of the layers, or fewer beside the head, lie on the small card, which is
// the slower one as well, so an even split is never best.
TEST_CASE("the search deals layers by memory over unlike cards, and finds what brute force finds") {
  for (const char* gpus : {"3090+3060", "3060+3090"}) {
    INFO(gpus);
    const ResolvedRequest r = resolved(request_for("llama-3.1-8b", gpus, {Method::qlora}));
    const SearchSite site(r, Method::qlora, r.clusters.front());
    int uneven = 0;
    const auto least = least_of_all(site, uneven);
    REQUIRE(least);
    CHECK(uneven > 0);
    SearchWish wish;
    wish.objective = objective_named("time");
    const SearchResult found = search_plans({&site}, known_facts().profile, wish);
    REQUIRE_FALSE(found.best.empty());
    CHECK(found.best.front().forecast.step_time.expected == *least);
    CHECK(found.proof.legal == site.space.legal());
    const FitAnswers fit = fit_answers(r);
    REQUIRE(fit.answers.front().chosen.verdict == Verdict::fits);
    CHECK(*least <= fit.answers.front().chosen.forecast.step_time.expected);
  }
}

}  // namespace shardwise
