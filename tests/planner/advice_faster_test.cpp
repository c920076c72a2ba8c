// A plan that only the allocator's blocks keep out is told of where it is so much faster.
#include "planner/advice/advice_faster.hpp"

#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct FasterAnswer {
  ResolvedRequest request;
  ChosenPlan chosen;
  std::vector<Advice> faster;
};

FasterAnswer faster_than_chosen(const Request& request) {
  FasterAnswer a{resolved(request), {}, {}};
  const Method method = a.request.methods.front();
  const Cluster& cluster = a.request.clusters.front();
  auto chosen = choose_plan(a.request, method, cluster, Room::weighed, nullptr, Looked::all);
  REQUIRE(chosen);
  a.chosen = *std::move(chosen);
  a.faster = advise_faster(a.request, method, cluster, a.chosen);
  return a;
}

}  // namespace

// ZeRO-3 over eight nodes of eight cards moves a card's eighth of 2 bytes x 70.6e9 three times a
// step (forward, backward, gradients; embedding and head, 2.1e9, stay gathered), 7/8 of it from
// other nodes. Eight cards share a port of 1.25e9 B/s: 2 x (3 x 70.6 - 2.1) x 7/8 / 1.25 = 294 s.
// Eight stages send next to nothing between nodes. With everything run again they take at least
// 8 x 70.6e9 x 64 x 2,048 FLOP / (64 x 165.2e12 FLOP/s) = 7.0 s, and miss by blocks alone.
TEST_CASE("a faster plan that fits with segments that grow is told of, and is what it says") {
  const Request request = request_for("70b", "64xRTX-4090", {Method::full});
  const FasterAnswer a = faster_than_chosen(request);
  CHECK(a.chosen.question.plan.zero_stage == 3);
  CHECK(a.chosen.forecast.step_time.expected > Seconds(290));
  REQUIRE(a.faster.size() == 1);
  const Advice& told = a.faster.front();
  CHECK(told.plan == "dp=1,tp=8,sp=true,pp=8,mbs=1,ga=64,recompute=full,zero=0");
  CHECK(told.change.find("--expandable-segments") != std::string::npos);
  CHECK(told.verdict == Verdict::fits);
  CHECK(told.step_time.expected > Seconds(7));
  CHECK(1.2 * told.step_time.expected <= a.chosen.forecast.step_time.expected);
  CHECK(told.needed <= a.chosen.forecast.worst().capacity);
  REQUIRE(told.request);
  CHECK(told.request->expandable_segments);

  const FasterAnswer followed = faster_than_chosen(*told.request);
  CHECK(followed.chosen.verdict == told.verdict);
  CHECK(followed.chosen.forecast.worst().needed == told.needed);
  CHECK(followed.chosen.forecast.step_time.expected == told.step_time.expected);
  CHECK(followed.faster.empty());

  // Without the setting its tensors and what lies beside them would fit, and it does not.
  Request without = *told.request;
  without.expandable_segments = false;
  const ChosenPlan missed = faster_than_chosen(without).chosen;
  const StageForecast& s = missed.forecast.worst();
  CHECK(missed.verdict == Verdict::does_not_fit);
  CHECK(s.peak.allocated + (s.peak.device - s.peak.reserved) <= s.capacity);
}

// The same cards with segments that grow: the plan is the one that is chosen.
TEST_CASE("nothing is told of segments that grow where they do") {
  Request request = request_for("70b", "64xRTX-4090", {Method::full});
  request.expandable_segments = true;
  const FasterAnswer a = faster_than_chosen(request);
  CHECK(a.chosen.question.plan.pipeline == 8);
  CHECK(a.faster.empty());
}

// 16 bytes x 0.124e9 are 1.9 GiB: nothing misses.
TEST_CASE("where every plan fits none is faster for its segments") {
  const FasterAnswer a = faster_than_chosen(request_for("gpt2", "2xA100-80GB", {Method::full}));
  CHECK(a.chosen.fragmented.empty());
  CHECK(a.faster.empty());
}

}  // namespace shardwise
