// Multi-token prediction: what it adds to the head.
#include <algorithm>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

int products(const LayerGraph& graph) {
  int n = 0;
  for (const Operator& op : graph.operators)
    n += static_cast<int>(std::count_if(op.forward.begin(), op.forward.end(), [](const Kernel& k) {
      return std::holds_alternative<GemmWork>(k);
    }));
  return n;
}

}  // namespace

// The head has one product; each depth projects 2 h to h, runs a layer and the head again. Its
// weights, one layer's with two norms and 2 h^2 more, are there once however deep.
TEST_CASE("each depth of prediction is a layer and a head more", "[prediction]") {
  Workload w = pretraining(llama(4, 512, 8, 2, 1408, 1000), 128);
  const ParallelPlan plan = plan_of(1);
  const LayerGraph block = block_graph(w, plan, {});
  const LayerGraph head = head_graph(w, plan, false);
  REQUIRE(products(head) == 1);
  for (const int depths : {1, 2}) {
    w.prediction_depths = depths;
    const LayerGraph deeper = head_graph(w, plan, false);
    CHECK(products(deeper) == 1 + depths * (1 + products(block) + 1));
    CHECK(deeper.parameters.base() ==
          head.parameters.base() + block.parameters.base() + 2 * 512 + 2 * 512 * 512);
  }
}

// "*E": a layer of attention and one of experts, so the four projections of attention, router and
// two grouped products, beside the projection and the head; all in 16 bits though the rest is not.
TEST_CASE("a hybrid spells its prediction layer", "[prediction]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 256, 0, false, 0, 1};
  w.model.mixers = "*E";
  w.model.prediction_mixers = "*E";
  w.compute = DType::fp8;
  const ParallelPlan plan = plan_of(1);
  BlockKind attention, experts;
  attention.mixer = LayerMixer::attention;
  experts.mixer = LayerMixer::experts;
  const int both =
      products(block_graph(w, plan, attention)) + products(block_graph(w, plan, experts));
  w.prediction_depths = 1;
  const LayerGraph head = head_graph(w, plan, false);
  CHECK(products(head) == 1 + 1 + both + 1);
  for (const Operator& op : head.operators)
    for (const Kernel& k : op.forward)
      if (const auto* g = std::get_if<GemmWork>(&k)) CHECK(g->dtype == DType::bf16);
}

}  // namespace shardwise
