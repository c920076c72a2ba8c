#include "planner/search/plan_bounds.hpp"

#include "planner/search/layer_bounds.hpp"
#include "planner/search/plan_search.hpp"
#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// Weights of 4,000 bytes, as many of gradients, 8,000 of moments: 1,000 parameters in fp32.
LayerState thousand_parameters() {
  LayerState state;
  state.weights = 4'000;
  state.gradients = 4'000;
  state.optimizer = 8'000;
  state.stepped_elements = 1'000;
  return state;
}

// What `use` says of a 1B's search on so many A100, its plan data-parallel alone.
template <class Use>
auto asked_on(const std::string& gpus, Method method, const std::string& framework,
              const ParallelPlan& plan, Use use) {
  Request r = request_for("llama-3.2-1b", gpus, {method});
  r.framework = framework;
  const ResolvedRequest asked = resolved(r);
  const SearchSite site(asked, asked.methods.front(), asked.clusters.front());
  const Profile& profile = known_facts().profile;
  const CollectiveModel collectives(site.cluster, profile.links);
  return use(BoundSite{site.space.workload(plan), site.cluster, profile, collectives});
}

StageStateBytes in(const std::string& framework) {
  ParallelPlan plan;
  plan.data = 2;
  plan.zero_stage = 3;
  return asked_on("2xA100-80GB", Method::full, framework, plan, [&](const BoundSite& at) {
    return state_bytes(at, plan, thousand_parameters());
  });
}

}  // namespace

// What is kept: 4,000 + 8,000; with gradients 4,000 more. The kernels of foreach AdamW hold the
// roots of the second moments beside all that, 4,000; a fused one holds nothing.
TEST_CASE("while lists of tensors are stepped their temporaries are held as well", "[search]") {
  const StageStateBytes lists = in("pytorch-fsdp2"), fused = in("torchtitan");
  CHECK(lists.kept == Bytes(12'000));
  CHECK(lists.with_gradients == Bytes(16'000));
  CHECK(lists.at_step == Bytes(20'000));
  CHECK(fused.with_gradients == Bytes(16'000));
  CHECK(fused.at_step == Bytes(16'000));
}

// On one stage with the embedding a tied head's gradient is added to that one's; on a stage of its
// own, where a plan may put it, it takes what a head with weights of its own takes.
TEST_CASE("bounds of a tied head count no sum with the embedding's gradient", "[search]") {
  ParallelPlan plan;
  plan.data = 8;
  plan.zero_stage = 0;
  const auto head = [&](bool tied) {
    return asked_on("8xA100-40GB", Method::pretrain, "picotron", plan, [&](const BoundSite& at) {
      Workload w = at.workload;
      w.model.tied_embeddings = tied;
      return BoundLayers(w, plan, at.cluster, at.profile, at.collectives, "none").layers.back();
    });
  };
  const LayerBound with = head(true), without = head(false);
  CHECK(with.weight == without.weight);
  CHECK(with.input == without.input);
  CHECK(with.host == without.host);
}

// Gate and up of a 1B have 2,048 x 8,192 weights of 4 bytes each, 64 MiB: DistributedDataParallel's
// bucket of 25 MiB is full between them, so that a compiled graph is cut there and launches more,
// where there are data ranks. A stage of its own has none, and what bounds both is the whole graph.
TEST_CASE("bounds of layers are of graphs that no bucket cuts", "[search]") {
  ParallelPlan plan;
  plan.data = 8;
  plan.zero_stage = 0;
  const auto block = [&](bool cuts) {
    return asked_on("8xA100-40GB", Method::pretrain, "nanogpt", plan, [&](const BoundSite& at) {
      Workload w = at.workload;
      w.framework.layers.cuts_compiled_graphs = cuts;
      REQUIRE(cuts_graphs(w, plan) == cuts);
      const auto held = [&](const LayerGraph& graph) { return graph.operators.size(); };
      if (cuts) {
        ParallelPlan alone = plan;
        alone.data = 1;
        REQUIRE(held(block_graph(w, plan, {})) > held(block_graph(w, alone, {})));
      }
      return BoundLayers(w, plan, at.cluster, at.profile, at.collectives, "none").layers.at(1);
    });
  };
  const LayerBound cut = block(true), whole = block(false);
  CHECK(cut.forward == whole.forward);
  CHECK(cut.input == whole.input);
  CHECK(cut.saved == whole.saved);
  CHECK(cut.weight == whole.weight);
  CHECK(cut.host == whole.host);
}

}  // namespace shardwise
