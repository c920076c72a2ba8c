#include "planner/search/plan_fix.hpp"

#include <algorithm>

#include "planner/answers/plan_answer.hpp"
#include "planner/search/plan_search.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/planner/small_problems.hpp"

namespace shardwise {
namespace {

// Every legal plan of a request's space, in the order of its points.
std::vector<ParallelPlan> legal_plans(const ResolvedRequest& request) {
  const SearchSite site(request, request.methods.front(), request.clusters.front());
  std::vector<ParallelPlan> plans;
  if (site.space.nothing_left()) return plans;
  each_point(site.space, [&](const PlanPoint& x) {
    if (!site.space.why_not(x)) plans.push_back(*site.space.plan(x));
  });
  CHECK(static_cast<std::int64_t>(plans.size()) == site.space.legal());
  return plans;
}

Request small_request(const char* framework) {
  Request r = request_for("gpt2", "4xA100-40GB", {Method::pretrain});
  r.framework = framework;
  r.sequence = 512;
  r.batch = 8;
  return r;
}

std::string only_problem(const std::string& text) {
  const auto fix = PlanFix::parse(text);
  REQUIRE_FALSE(fix);
  REQUIRE(fix.error().size() == 1);
  CHECK(fix.error().front().kind == ProblemKind::request);
  CHECK(fix.error().front().where == "--fix");
  return fix.error().front().what;
}

}  // namespace

TEST_CASE("what is held fixed is read as plans spell it", "[fix]") {
  const auto fix = PlanFix::parse("tp=8,sp=yes,mbs=1|2");
  REQUIRE(fix);
  CHECK(fix->shown() == "tp=8, sp=true, mbs=1 or 2");
  CHECK(fix->allows("tp", "8"));
  CHECK_FALSE(fix->allows("tp", "4"));
  CHECK(fix->allows("pp", "4"));  // nobody holds it
  ParallelPlan p;
  p.tensor = 8;
  p.sequence_parallel = true;
  p.microbatch = 2;
  CHECK(fix->allows(p));
  p.microbatch = 4;
  CHECK_FALSE(fix->allows(p));
}

TEST_CASE("what cannot be held fixed is one problem", "[fix]") {
  CHECK(holds(only_problem("recomput=full"), "did you mean recompute?"));
  CHECK(holds(only_problem("tp"), "needs a value"));
  CHECK(holds(only_problem("tp=2,pp=2,tp=4"), "tp is given twice"));
  CHECK(holds(only_problem("zero=4"), "\"4\" is no value of zero"));
  CHECK(holds(only_problem("tp=0"), "\"0\" is no value of tp"));
  CHECK(holds(only_problem("pp=two"), "\"two\" is no value of pp"));
  CHECK(holds(only_problem("schedule=1f2b"), "\"1f2b\" is no value of schedule"));
  CHECK(holds(only_problem("mbs=1|"), "\"\" is no value of mbs"));
  CHECK(holds(only_problem("offload=all"), "--offload"));
  CHECK(holds(only_problem(""), "expected dp, tp"));
}

// The space that a fix leaves is the whole one without what the fix rules out, in the same order.
TEST_CASE("a space with a fix is the whole space, filtered", "[fix]") {
  int some = 0;
  for (const char* framework : {"megatron-lm", "pytorch-fsdp2"}) {
    Request r = small_request(framework);
    const std::vector<ParallelPlan> all = legal_plans(resolved(r));
    for (const char* text :
         {"tp=2", "tp=1|4,zero=1|2", "pp=2", "pp=1|4,mbs=1", "schedule=interleaved", "vpp=2|3",
          "schedule=1f1b,pp=2", "dp=2", "dp=1|4,ga=2", "ga=8|4", "sp=true", "sp=false,tp=2",
          "cp=2,recompute=full|selective", "recompute=none", "zero=3,mbs=2", "tp=3", "mbs=3",
          "tp=4,pp=4", "ep=1,cp=1"}) {
      INFO(framework << ": " << text);
      const PlanFix fix = *PlanFix::parse(text);
      std::vector<ParallelPlan> kept;
      std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
                   [&](const ParallelPlan& p) { return fix.allows(p); });
      r.fix = text;
      CHECK(legal_plans(resolved(r)) == kept);
      some += kept.empty() ? 0 : 1;
    }
  }
  CHECK(some > 24);  // 38 in all; tp=3, mbs=3 and tp=4,pp=4 leave nothing in either
}

// All plans of the whole space in their order, then those that the fix allows, are what the search
// with the fix finds; of the same step and memory.
TEST_CASE("the search with a fix finds the whole list, filtered", "[fix]") {
  Request r = small_request("megatron-lm");
  r.recompute = "none";
  r.microbatch = 2;
  PlanWish wish;
  wish.top = 100'000;
  const auto whole = plan_answer(r, wish, known_facts());
  REQUIRE(whole);
  for (const char* text : {"tp=2", "pp=2|4", "dp=2,zero=1", "schedule=interleaved,vpp=2|3"}) {
    INFO(text);
    const PlanFix fix = *PlanFix::parse(text);
    std::vector<FoundPlan> kept;
    std::copy_if((*whole)->result.best.begin(), (*whole)->result.best.end(),
                 std::back_inserter(kept), [&](const FoundPlan& p) { return fix.allows(p.plan); });
    REQUIRE_FALSE(kept.empty());
    r.fix = text;
    const auto held = plan_answer(r, wish, known_facts());
    REQUIRE(held);
    const auto& found = (*held)->result.best;
    CHECK(std::equal(kept.begin(), kept.end(), found.begin(), found.end(),
                     [](const FoundPlan& a, const FoundPlan& b) {
                       return a.plan == b.plan && a.value == b.value &&
                              a.forecast.peak_device.expected == b.forecast.peak_device.expected;
                     }));
    // The best of them alone is the first of the list.
    PlanWish one;
    one.top = 1;
    const auto best = plan_answer(r, one, known_facts());
    REQUIRE((*best)->result.best.size() == 1);
    CHECK((*best)->result.best.front().plan == kept.front().plan);
  }
}

TEST_CASE("where no plan is legal with what is held, the answer says why", "[fix]") {
  Request r = small_request("megatron-lm");
  const auto note = [&](const char* text) {
    r.fix = text;
    const auto a = plan_answer(r, {}, known_facts());
    REQUIRE(a);
    CHECK((*a)->result.best.empty());
    CHECK((*a)->result.proof.legal == 0);
    return (*a)->notes.back();
  };
  // GPT-2 has 12 heads; of what divides them, 4 GPUs divide into 1, 2 and 4.
  CHECK(
      note("tp=3") ==
      "No plan with tp=3 is legal: tp can be 1, 2 or 4 here; the plan is for dp 1 x tp 3 x cp 1 x "
      "pp 1 = 3 GPUs, the cluster has 4.");
  // 8 neither divides the 4 GPUs nor the 12 heads.
  CHECK(holds(note("tp=8"), "tp 8 must divide the 12 attention heads"));
  CHECK(holds(note("ep=2"), "ep can be 1 here; ep 2 needs a mixture-of-experts model"));
  CHECK(holds(note("tp=4,pp=4"), "No plan with tp=4, pp=4 is legal: tp x cp x pp must divide"));
}

}  // namespace shardwise
