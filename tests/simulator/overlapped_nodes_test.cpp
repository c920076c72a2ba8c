// What Megatron-LM before core 0.16 still holds of a backward pass beside a forward one.
#include "simulator/memory/overlapped_nodes.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t tokens = 1024, hidden = 512;

// Four layers of eight experts, of which every token takes two; a small vocabulary leaves the peak
// to the layers.
Workload small_mixture() {
  Workload w = pretraining(llama(4, hidden, 8, 8, 1024, 64), tokens);
  w.model.moe = MixtureOfExperts{8, 2, 512, 0, false, 0, 1};
  w.overlaps_experts = true;
  return w;
}

ParallelPlan over_four_ranks(int microbatches) {
  ParallelPlan plan = plan_of(4);
  plan.expert = 4;
  plan.microbatches = microbatches;
  return plan;
}

std::int64_t held_by_first_block(const Workload& w, const ParallelPlan& plan) {
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  return held_by_nodes(w, plan, *partition.stages[0][0].layers[1].definition);
}

}  // namespace

// Of t = 1024 x 512 x 2 B: sent to every expert a token's rows are 2 t: 4 t + 3 x 2 t. Sent once to
// each rank they are, of two experts drawn over four ranks, 4 (1 - (3/4)^2) = 1.75 t: 6 t + 3.5 t.
TEST_CASE("Nodes hold inputs, outputs and gradients of a layer", "[memory_play]") {
  Workload w = small_mixture();
  const std::int64_t t = tokens * hidden * 2;
  CHECK(held_by_first_block(w, over_four_ranks(2)) == 10 * t);
  w.framework.experts.dispatches_once = true;
  CHECK(held_by_first_block(w, over_four_ranks(2)) == 19 * t / 2);
  w.model.moe.reset();
  CHECK(held_by_first_block(w, plan_of(1)) == 4 * t);
}

// The second microbatch's layers are all there when those of the first still hold theirs; a lone
// microbatch has none beside it.
TEST_CASE("What nodes hold stands beside the next microbatch", "[memory_play]") {
  Workload w = small_mixture();
  const auto peak = [&](int microbatches) {
    return first_stage(w, over_four_ranks(microbatches)).steady.allocated.value;
  };
  const std::int64_t two = peak(2), one = peak(1);
  w.framework.experts.overlap_keeps_nodes = true;
  CHECK(static_cast<double>(peak(2) - two) ==
        Approx(static_cast<double>(4 * held_by_first_block(w, over_four_ranks(2)))).epsilon(0.05));
  CHECK(static_cast<double>(peak(1) - one) < 0.5 * static_cast<double>(peak(2) - two));
  w.overlaps_experts = false;
  CHECK(peak(2) == two);
}

}  // namespace shardwise
