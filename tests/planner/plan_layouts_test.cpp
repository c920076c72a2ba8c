#include "planner/choice/plan_layouts.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "planner/choice/workload_choice.hpp"
#include "planner/search/plan_choice.hpp"
#include "simulator/packed_weights.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::vector<std::vector<int>> splits(const char* gpus) {
  const ResolvedRequest r = resolved(request_for("qwen2.5-32b", gpus, {Method::qlora}));
  const Cluster& cluster = r.clusters.front();
  return layers_by_memory(choose_workload(r, Method::qlora, cluster, 0).workload, cluster);
}

std::vector<ParallelPlan> layouts(const char* model, const char* framework, int context) {
  Request request = request_for(model, "8xH100-SXM", {Method::full});
  request.framework = framework;
  const ResolvedRequest r = resolved(request);
  const Cluster& cluster = r.clusters.front();
  return plan_layouts(choose_workload(r, Method::full, cluster, 0).workload, cluster, 8, context);
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

// What each framework's row says: context_kind of catalog/frameworks.
TEST_CASE("a sequence is shared as the framework shares it") {
  for (const auto& [framework, kind] : {std::pair{"megatron-lm", ContextKind::ring},
                                        std::pair{"torchtitan", ContextKind::all_gather},
                                        std::pair{"hf-deepspeed", ContextKind::ulysses}}) {
    INFO(framework);
    REQUIRE_FALSE(layouts("8b", framework, 2).empty());
    for (const ParallelPlan& plan : layouts("8b", framework, 2)) CHECK(plan.context_kind == kind);
    for (const ParallelPlan& plan : layouts("8b", framework, 1))
      CHECK(plan.context_kind == ContextKind::ring);  // says nothing
  }
}

// 32 attention heads and 8 of keys divide over two ranks, the one group of its Mamba layers not.
TEST_CASE("a layout divides every part of the model over its tensor ranks") {
  REQUIRE_FALSE(layouts("granite-4.0-h-micro", "megatron-lm", 1).empty());
  for (const ParallelPlan& plan : layouts("granite-4.0-h-micro", "megatron-lm", 1))
    CHECK(plan.tensor == 1);
  const std::vector<ParallelPlan> dense = layouts("8b", "megatron-lm", 1);
  CHECK(std::any_of(dense.begin(), dense.end(), [](const auto& p) { return p.tensor == 8; }));
}

// fully_shard reduces gradients into shards: there is DDP, and what shards at least as much as
// ZeRO-2, in a pipeline too. Megatron-LM's distributed optimizer is ZeRO-1.
TEST_CASE("layouts have the ZeRO stages that a framework's code has") {
  const auto stages = [](const char* framework) {
    std::pair<std::set<int>, std::set<int>> found;  // without a pipeline, with one
    for (const ParallelPlan& p : layouts("llama-3.1-8b", framework, 1))
      if (p.data > 1) (p.pipeline > 1 ? found.second : found.first).insert(p.zero_stage);
    return found;
  };
  CHECK(stages("pytorch-fsdp2") == std::pair<std::set<int>, std::set<int>>{{0, 2, 3}, {0, 2}});
  CHECK(stages("megatron-lm").first.count(1) == 1);
  CHECK(stages("megatron-lm").second == std::set<int>{0, 1});
}

// Llama-3.1-70B's packed weights are some 36 GiB, too many for a card of 24 but for a split over
// four of them; bitsandbytes' codes are parameters, of which a quarter may lie on each.
TEST_CASE("no plan relies on shards of weights that are buffers") {
  Request request = request_for("70b", "4x4090", {Method::qlora});
  request.quantization = Quantization::gptq;
  const ResolvedRequest r = resolved(request);
  const Cluster& cluster = r.clusters.front();
  const Workload packed = choose_workload(r, Method::qlora, cluster, 0).workload;
  REQUIRE_FALSE(why_frozen_stay_whole(packed, 3).empty());
  for (const ParallelPlan& p : plan_layouts(packed, cluster, 16)) CHECK(p.zero_stage < 3);
  const auto chosen = choose_plan(r, Method::qlora, cluster);
  REQUIRE(chosen);
  CHECK(chosen->question.plan.layer_split);

  request.plans = {"dp=4,zero=3"};
  const auto asked = choose_plan(resolved(request), Method::qlora, cluster);
  REQUIRE(asked);
  CHECK(std::count_if(asked->notes.begin(), asked->notes.end(), [](const std::string& note) {
          return note.find("buffers") != std::string::npos;
        }) == 1);

  request.quantization = Quantization::nf4;
  const ResolvedRequest codes = resolved(request);
  const Workload parameters = choose_workload(codes, Method::qlora, cluster, 0).workload;
  const auto sharded = plan_layouts(parameters, cluster, 16);
  CHECK(std::any_of(sharded.begin(), sharded.end(),
                    [](const ParallelPlan& p) { return p.zero_stage == 3; }));
}

}  // namespace shardwise
