// A range of sizes says of each what plan says of it alone.
#include "planner/answers/plan_scaling.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "planner/answers/list_starts.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

bool any_note(const PlanAnswer& a, const std::string& begin) {
  return std::any_of(a.notes.begin(), a.notes.end(),
                     [&](const std::string& note) { return note.starts_with(begin); });
}

}  // namespace

// A 32B in 4 bits is 18 GB, of which two cards of 24 GB hold halves beside the logits of 3,072
// tokens and activations, 20.9 GiB: it fits as forecast, and leaves no room for the error of such
// forecasts. Four cards hold quarters.
TEST_CASE("a size that only tight plans fit has one, as it would have alone", "[search]") {
  Request r = request_for("qwen2.5-32b", "2..4xRTX-4090", {Method::qlora});
  r.framework = "fsdp_qlora";
  r.sequence = 3072;
  const auto range = plan_answer(r, {}, known_facts());
  REQUIRE(range);
  const PlanAnswer& a = **range;
  REQUIRE(a.scaling.size() == 2);
  for (const ScalingPoint& p : a.scaling) {
    INFO(p.cluster);
    REQUIRE(p.best);
    Request one = r;
    one.gpus = p.cluster;
    const auto alone = plan_answer(one, {}, known_facts());
    REQUIRE(alone);
    REQUIRE_FALSE((**alone).result.best.empty());
    const FoundPlan& first = (**alone).result.best.front();
    CHECK(whole_text(p.best->plan) == whole_text(first.plan));
    CHECK(p.best->forecast.step_time.expected == first.forecast.step_time.expected);
    CHECK(p.best->forecast.verdict == first.forecast.verdict);
    CHECK(p.starts.targets == starts_of(**alone, first).targets);
  }
  CHECK(a.scaling.front().best->forecast.verdict == Verdict::tight);
  CHECK(a.scaling.back().best->forecast.verdict == Verdict::fits);
  CHECK(any_note(a, "On 2 GPUs no plan leaves room"));
  REQUIRE(a.scaling.back().faster);
}

// Megatron-LM has no flags for the recomputation by which a 70B on 64 H100 is fastest
// (plan_told_test.cpp), nor on 32: no target starts these plans, which is said once.
TEST_CASE("a range says what starts its plans", "[search]") {
  Request r = request_for("llama-3.2-1b", "1..4xA100-80GB", {Method::pretrain});
  const auto small = plan_answer(r, {}, known_facts());
  REQUIRE(small);
  CHECK(std::all_of((**small).scaling.begin(), (**small).scaling.end(), [&](const ScalingPoint& p) {
    return p.best && p.starts.targets == starts_of(**small, *p.best).targets;
  }));
  // What starts the one of 1 GPU is more than what starts those of 2 and 4; it is told first.
  std::vector<std::string> told;
  for (const std::string& note : (**small).notes)
    if (note.starts_with("The best plan on ")) told.push_back(note);
  REQUIRE(told.size() == 2);
  CHECK(told[0].starts_with("The best plan on 1 GPU is started"));
  CHECK(told[1].starts_with("The best plan on 2 and 4 GPUs is started"));
  r = request_for("llama-3.1-70b", "32..64xH100-SXM", {Method::pretrain});
  r.batch = 512;
  const auto large = plan_answer(r, {}, known_facts());
  REQUIRE(large);
  const ScalingPoint& last = (**large).scaling.back();
  REQUIRE(last.best);
  REQUIRE(beyond_usual(**large, *last.best));
  CHECK_FALSE(last.starts.any());
  CHECK(
      any_note(**large, "No target of shardwise launch can start the best plan on 32 and 64 GPUs"));
}

}  // namespace shardwise
