// Plans that no framework could run as they are said.
#include <string>

#include "planner/choice/workload_choice.hpp"
#include "planner/request/asked_plan.hpp"
#include "simulator/plan_rules.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// What is wrong with a plan; empty: nothing.
std::string wrong_with(const Request& request, const std::string& text) {
  const ResolvedRequest r = resolved(request);
  const Workload w = choose_workload(r, r.methods.front(), r.clusters.front(), 0).workload;
  const auto plan = complete_plan(r, w, r.clusters.front(), text);
  REQUIRE(plan);
  const Problems problems = plan_problems(w, *plan, r.clusters.front());
  return problems.empty() ? "" : problems.front().what;
}

}  // namespace

// One process per split; sixteen cards are two boxes of eight.
TEST_CASE("layers are dealt to the cards of one node") {
  Request r = request_for("70b", "16xRTX-3090", {Method::lora});
  r.batch = 16;
  CHECK(holds(wrong_with(r, "dp=1,pp=16,split=true"), "pp must divide the 8 of a node, got 16"));
  CHECK(wrong_with(r, "dp=2,pp=8,split=true").empty());
}

TEST_CASE("what shards without ZeRO is said with ZeRO") {
  Request r = request_for("8b", "16xA100-80GB", {Method::pretrain});
  r.framework = "megatron-deepspeed";
  r.batch = 64;
  r.precision = DType::bf16;
  CHECK(holds(wrong_with(r, "dp=8,tp=2,zero=0"), "zero=1"));
  CHECK(wrong_with(r, "dp=8,tp=2,zero=1").empty());
  r.precision = DType::fp16;
  CHECK(wrong_with(r, "dp=8,tp=2,zero=0").empty());
}

}  // namespace shardwise
