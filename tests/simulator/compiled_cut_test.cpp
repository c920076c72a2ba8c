#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {

// Two graphs where DistributedDataParallel's bucket is full between gate and up: 512 x 2,048
// weights of 2 B. The second keeps silu(gate), 2f; under autocast each casts what it reads, 2h
// more, unless transformers' norm has given 16 bits back.
TEST_CASE("a compiled graph is cut where a bucket is full", "[compiled_cut]") {
  constexpr std::int64_t tokens = 256, h = 512, f = 2048;
  Workload w = pretraining(llama(2, h, 8, 8, f, 1000), tokens);
  w.framework.layers.runs_transformers = true;
  w.framework.layers.kernels = KernelStyle::compiled;
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  const auto saved = [](const Workload& of, int ranks, int zero = 0) {
    ParallelPlan plan = plan_of(ranks);
    plan.zero_stage = zero;
    return kept_bytes(block_graph(of, plan, {})) / tokens;
  };
  const std::int64_t one = saved(w, 2);
  w.framework.gradients.bucket = Bytes(2 * h * f);
  CHECK(saved(w, 2) == one);
  w.framework.layers.cuts_compiled_graphs = true;
  CHECK(saved(w, 2) - one == 2 * f);
  CHECK(saved(w, 1) == one);
  CHECK(seen_sharding(w, plan_of(1)) != seen_sharding(w, plan_of(2)));
  CHECK(saved(w, 2, 2) == one);
  w.framework.gradients.bucket = Bytes(2 * h * f + 1);
  CHECK(saved(w, 2) == one);
  w.framework.gradients.bucket = Bytes(2 * h * f);
  w.framework.formats.autocast = true;
  CHECK(saved(w, 2) - one == 2 * f);
  w.framework.layers.runs_transformers = false;
  CHECK(saved(w, 2) - one == 2 * f + 2 * h);
}

}  // namespace shardwise
