#include "planner/search/plan_climb.hpp"

#include "planner/choice/plan_layouts.hpp"
#include "planner/search/fastest_plan.hpp"
#include "simulator/plan_rules.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// What a plan is chosen from: whatever is asked, and all of it looked at or not.
Result<ChosenPlan> choice(const ResolvedRequest& r, Method method, Looked looked,
                          Room room = Room::weighed) {
  return choose_plan(r, method, r.clusters.front(), room, nullptr, looked);
}

void check_same(const Result<ChosenPlan>& a, const Result<ChosenPlan>& b) {
  REQUIRE(static_cast<bool>(a) == static_cast<bool>(b));
  if (!a) {
    CHECK(a.error().front().what == b.error().front().what);
    return;
  }
  CHECK(to_string(a->question.plan) == to_string(b->question.plan));
  CHECK(a->verdict == b->verdict);
  CHECK(a->notes == b->notes);
  CHECK(a->forecast.step_time.expected == b->forecast.step_time.expected);
  CHECK(a->forecast.worst().needed == b->forecast.worst().needed);
}

}  // namespace

// Cards where nothing fits, where plans fit tightly only, where layers are split over the cards of
// a box, and where everything fits; without and with NVLink.
TEST_CASE("a choice that looks at what may be chosen alone makes the same answer") {
  int looked_at = 0, all = 0;
  for (const char* gpus : {"4090", "2x3090", "2x3090+2x4090", "8xA100-80GB", "16xH100-SXM"})
    for (const char* model : {"8b", "qwen2-vl-7b", "olmoe-1b-7b", "32b"})
      for (const Method method : {Method::full, Method::lora, Method::qlora})
        for (const Room room : {Room::weighed, Room::demanded}) {
          INFO(gpus << " " << model << " " << name(method));
          const ResolvedRequest r = resolved(request_for(model, gpus, {method}));
          const auto some = choice(r, method, Looked::decisive, room);
          const auto every = choice(r, method, Looked::all, room);
          check_same(some, every);
          if (!some) continue;
          CHECK(some->considered <= every->considered);
          looked_at += some->considered;
          all += every->considered;
        }
  CHECK(2 * looked_at < all);
}

// 8B with LoRA fits two 3090 and full training does not; a GPU of 24 GB has no room for 8 billion
// weights of 2 bytes, their gradients and two moments, 64 GB.
TEST_CASE("who asks for a plan that fits hears of the same one, or of none") {
  int fit = 0, miss = 0;
  for (const char* gpus : {"4090", "2x3090", "2x3090+2x4090", "8xA100-80GB"})
    for (const char* model : {"8b", "olmoe-1b-7b", "32b"})
      for (const Method method : {Method::full, Method::lora, Method::qlora}) {
        INFO(gpus << " " << model << " " << name(method));
        const ResolvedRequest r = resolved(request_for(model, gpus, {method}));
        const auto some = choice(r, method, Looked::decisive);
        const auto fitting = choice(r, method, Looked::fitting);
        const bool fits = some && some->verdict != Verdict::does_not_fit;
        REQUIRE(static_cast<bool>(fitting) == fits);
        (fits ? fit : miss) += 1;
        if (fits) check_same(some, fitting);
      }
  CHECK(fit > 0);
  CHECK(miss > 0);
  const ResolvedRequest full = resolved(request_for("8b", "4090", {Method::full}));
  CHECK_FALSE(choice(full, Method::full, Looked::fitting));
}

// In the frameworks that build pipelines, offload and page optimizers too.
TEST_CASE("whatever the framework, the same plan is chosen") {
  for (const char* framework : {"megatron-lm", "deepspeed", "torchtune-low-memory", "nanotron"})
    for (const Method method : {Method::full, Method::lora}) {
      INFO(framework << " " << name(method));
      Request request = request_for("8b", "8xA100-80GB", {method});
      request.framework = framework;
      const auto r = resolve(request, known_facts(), UnnamedMethods::fine_tuning);
      if (!r) continue;
      check_same(choice(*r, method, Looked::decisive), choice(*r, method, Looked::all));
    }
}

TEST_CASE("no step is shorter than its bound, nor another with what layers are known to take") {
  int plans = 0;
  double reached = 0;  // of their steps, by their bounds
  for (const char* gpus : {"2x3090+2x4090", "8xA100-80GB", "16xH100-SXM"})
    for (const char* model : {"8b", "qwen2-vl-7b", "olmoe-1b-7b"})
      for (const Method method : {Method::full, Method::qlora}) {
        const ResolvedRequest r = resolved(request_for(model, gpus, {method}));
        const Cluster& cluster = r.clusters.front();
        ChoiceCosts costs(r, method, cluster);
        const Profile& profile = r.facts->profile;
        for (ParallelPlan plan : plan_layouts(costs.workload({}), cluster, r.batch))
          for (const char* policy : {"none", "full"}) {
            plan.recompute = policy;
            plan.microbatches = r.batch / plan.data;
            const Question q{costs.workload(plan), plan, cluster};
            if (!plan_problems(q.workload, plan, cluster).empty()) continue;
            INFO(gpus << " " << model << " " << name(method) << " " << to_string(plan));
            const KnownCosts known = costs.known(plan);
            const auto alone = forecast(q, profile, {.memory = false});
            const auto with = forecast(q, profile, {.memory = false, .known = &known});
            REQUIRE(alone);
            CHECK(with->step_time.expected == alone->step_time.expected);
            CHECK(costs.step_bound(plan) <= alone->step_time.expected);
            reached += costs.step_bound(plan) / alone->step_time.expected;
            ++plans;
          }
      }
  CHECK(plans > 50);
  CHECK(reached > 0.5 * plans);
}

// An 8B's QLoRA on 80 GB: of microbatches of 1, 2, 4, ... sequences, all of which fit, the smallest
// may be chosen, and the largest.
TEST_CASE("of a climb the smallest microbatch and the largest are kept") {
  const ResolvedRequest r = resolved(request_for("8b", "8xA100-80GB", {Method::qlora}));
  const Cluster& cluster = r.clusters.front();
  ChoiceCosts costs(r, Method::qlora, cluster);
  PlanTrial s{r, cluster, Method::qlora, costs, Looked::all};
  ParallelPlan plan = plan_layouts(costs.workload({}), cluster, r.batch).front();
  plan.recompute = "full";
  const std::vector<int> sizes = microbatch_sizes(s, plan);
  REQUIRE(sizes.size() > 1);
  std::vector<PlanClimb> one;
  one.emplace_back(s, plan);
  climb_all(s, std::move(one));
  CHECK(s.considered == static_cast<int>(sizes.size()));
  REQUIRE(s.fitting.size() == 2);
  CHECK(s.fitting.front().question.plan.microbatch == sizes.front());
  CHECK(s.fitting.back().question.plan.microbatch == sizes.back());
}

// Of twelve sequences a climb has microbatches of one, two and four. Where gradients that a plan
// shards wait for the last one, all twelve at once are tried if one does not fit, and take least.
TEST_CASE("a climb's bound knows of all sequences at once") {
  Request request = request_for("8b", "8xA100-80GB", {Method::full});
  request.framework = "hf-trainer";
  request.batch = 96;
  const ResolvedRequest r = resolved(request);
  const Cluster& cluster = r.clusters.front();
  ChoiceCosts costs(r, Method::full, cluster);
  PlanTrial s{r, cluster, Method::full, costs};
  ParallelPlan plan;
  plan.data = 8;
  plan.zero_stage = 3;
  plan.recompute = "full";
  REQUIRE(microbatch_sizes(s, plan) == std::vector<int>{1, 2, 4});
  PlanClimb climb(s, plan);
  REQUIRE(climb.sizes() == 4);
  for (std::size_t size = 0; size < climb.sizes(); ++size) climb.bound(size);
  plan.microbatch = 4;
  plan.microbatches = 3;
  const Seconds four = costs.step_bound(plan);
  plan.microbatch = 12;
  plan.microbatches = 1;
  REQUIRE(costs.step_bound(plan) < four);
  CHECK(climb.least_left() == costs.step_bound(plan));
}

}  // namespace shardwise
