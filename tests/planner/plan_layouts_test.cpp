#include "planner/choice/plan_layouts.hpp"

#include "planner/choice/workload_choice.hpp"
#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::vector<std::vector<int>> splits(const char* gpus) {
  const ResolvedRequest r = resolved(request_for("qwen2.5-32b", gpus, {Method::qlora}));
  const Cluster& cluster = r.clusters.front();
  return layers_by_memory(choose_workload(r, Method::qlora, cluster, 0).workload, cluster);
}

}  // namespace

// 64 layers over 12 + 24 GB, the head worth none, 8 and 16 of them: a third of 64, 72 and 80 lie on
// the first card. Of equal cards the first has half of them; 32 and 32 is no other split.
TEST_CASE("layers are dealt by the memory of the cards") {
  CHECK(splits("3060+3090") == std::vector<std::vector<int>>{{21, 43}, {24, 40}, {27, 37}});
  CHECK(splits("2x3090") == std::vector<std::vector<int>>{{36, 28}, {40, 24}});
  CHECK(splits("3090+4090") == splits("2x3090"));
}

// 32.8e9 weights of 4 bits and their constants are 17 GiB, of 36 on both cards: half of them and
// what training takes are more than the small one has.
TEST_CASE("a small card beside a large one holds fewer layers") {
  const ResolvedRequest r = resolved(request_for("qwen2.5-32b", "3060+3090", {Method::qlora}));
  const auto chosen = choose_plan(r, Method::qlora, r.clusters.front());
  REQUIRE(chosen);
  CHECK(chosen->verdict != Verdict::does_not_fit);
  const std::vector<int>& layers = chosen->question.plan.layers_per_stage;
  REQUIRE(layers.size() == 2);
  CHECK(layers.front() < layers.back());
}

}  // namespace shardwise
