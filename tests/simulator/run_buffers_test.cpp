// What reductions take beside gradients.
#include "simulator/memory/run_buffers.hpp"

#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {

// Gradients of 3, 3, 5 and 2 elements: a bucket of 5 closes with the first that makes it longer, at
// 6, the next one at 7. One rank, or gradients that are sharded as they come, have none.
TEST_CASE("Flat buckets close with the gradient that makes them too long", "[run_buffers]") {
  Workload w = pretraining(llama(2, 64, 2, 2, 128, 100), 64);
  w.framework.gradients.bucket = Bytes(5 * 2);
  LayerGraph graph;
  for (const int elements : {3, 3, 5, 2}) {
    graph.operators.emplace_back();
    graph.operators.back().weight_gradient_elements = elements;
  }
  std::vector<std::vector<LayerHoldings>> layers(1);
  layers.front().emplace_back();
  layers.front().back().graph = &graph;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 1;
  CHECK(flat_buckets(w, plan, layers).empty());
  w.framework.gradients.reduces_flat_buckets = true;
  CHECK(flat_buckets(w, plan, layers) == std::vector<std::int64_t>{6, 7});
  CHECK(flat_buckets(w, plan_of(1), layers).empty());
  ParallelPlan shared = plan_of(1);  // one data rank, whose sequences two ranks share
  shared.zero_stage = 1;
  shared.context = 2;
  CHECK(flat_buckets(w, shared, layers) == std::vector<std::int64_t>{6, 7});
  plan.zero_stage = 2;
  CHECK(flat_buckets(w, plan, layers).empty());
}

}  // namespace shardwise
