// A framework that lowers precision by FSDP trains a plan without FSDP as its weights are stored.
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/search/plan_choice.hpp"
#include "planner/search/plan_search.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

ResolvedRequest torchtitan(const char* framework, const char* gpus) {
  Request r = request_for("8b", gpus, {Method::pretrain});
  r.framework = framework;
  return resolved(r);
}

ChosenWorkload in_plan(const ResolvedRequest& r, const char* text) {
  const Cluster& cluster = r.clusters.front();
  const auto first = choose_workload(r, Method::pretrain, cluster, 0);
  const auto plan = complete_plan(r, first.workload, cluster, text);
  REQUIRE(plan);
  return choose_workload(r, Method::pretrain, cluster, *plan);
}

}  // namespace

// torchtitan until 00b7f5693 of April 2026: fp32 where the model is split by TP or PP and no data
// or context ranks shard it; one GPU alone has autocast.
TEST_CASE("torchtitan without FSDP trains in fp32, and says so") {
  const ResolvedRequest r = torchtitan("torchtitan", "8xH100-SXM");
  for (const char* split : {"tp=8", "pp=8", "tp=2,pp=4"}) {
    INFO(split);
    const ChosenWorkload c = in_plan(r, split);
    CHECK(c.workload.compute == DType::fp32);
    CHECK(c.workload.weights() == WeightRecipe::fp32);
    REQUIRE(c.notes.size() == 1);
    CHECK(c.notes.front().find("trained in fp32") != std::string::npos);
  }
  for (const char* sharded : {"dp=8,zero=3", "tp=4,dp=2,zero=3", "cp=2,tp=4,zero=3"}) {
    INFO(sharded);
    CHECK(in_plan(r, sharded).workload.compute == DType::bf16);
  }
  const ResolvedRequest alone = torchtitan("torchtitan", "1xH100-SXM");
  CHECK(in_plan(alone, "dp=1").workload.compute == DType::bf16);
  const ResolvedRequest today = torchtitan("torchtitan-chunked-loss", "8xH100-SXM");
  CHECK(in_plan(today, "tp=8").workload.compute == DType::bf16);
}

// Activations of twice the width, and products on cores of a fifteenth of the rate: fp32 takes more
// of both, so a forecast of the same plan in bf16 would be wrong by more than rounding.
TEST_CASE("fit forecasts a plan that FSDP does not lower in its own format") {
  ResolvedRequest r = torchtitan("torchtitan", "8xH100-SXM");
  r.asked.plans = {"tp=8"};
  const auto fp32 = choose_plan(r, Method::pretrain, r.clusters.front());
  REQUIRE(fp32);
  CHECK(fp32->question.workload.compute == DType::fp32);
  CHECK(std::count_if(fp32->notes.begin(), fp32->notes.end(), [](const std::string& note) {
          return note.find("lowers precision by FSDP") != std::string::npos;
        }) == 1);
  ResolvedRequest today = torchtitan("torchtitan-chunked-loss", "8xH100-SXM");
  today.asked.plans = {"tp=8"};
  const auto bf16 = choose_plan(today, Method::pretrain, today.clusters.front());
  REQUIRE(bf16);
  CHECK(fp32->forecast.step_time.expected > bf16->forecast.step_time.expected);
}

// A search ranks plans of one number format: 8 GPUs split over 8 ranks have none of FSDP.
TEST_CASE("a search leaves out plans that would train in another format") {
  const ResolvedRequest r = torchtitan("torchtitan", "8xH100-SXM");
  const SearchSite site(r, Method::pretrain, r.clusters.front());
  std::int64_t split = 0, others = 0;
  for (const PlanPoint& outer : site.space.outer_points())
    site.space.each_pipeline(outer, [&](const PlanPoint&, const ParallelPlan& p) {
      ++(p.tensor * p.pipeline == 8 ? split : others);
    });
  CHECK(split == 0);
  CHECK(others > 0);
}

}  // namespace shardwise
