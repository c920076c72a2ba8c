// A card that gives cached memory back in one step may run out in the next.
#include <optional>
#include <string>
#include <vector>

#include "simulator/memory/stage_player.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {

// Eight ranks share the weights of six layers, whose copies are gathered and copied out. Of cards
// between what tensors hold at most and what the allocator takes where nobody stops it, some get
// through two steps and not through the third: what the allocator has given back to CUDA in the
// second it takes again in pieces of other sizes. The play says of each card what three steps, one
// after the other, say of it.
TEST_CASE("a card that has given cache back is played a step more", "[memory_play]") {
  Workload w = pretraining(llama(6, 1024, 16, 8, 2816, 32000), 768);
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  w.framework.update.fused = false;
  w.framework.sharding.parameters.copy_out = true;
  ParallelPlan plan = plan_of(8);
  plan.zero_stage = 3;
  plan.microbatches = 1;
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  const std::vector<Slot> order = slots_of_step(w, plan, schedule, 0);
  int second = 0, third = 0, enough = 0;
  for (const std::string recompute : {"none", "full"}) {
    const ModelPartition partition =
        partition_model(w, plan, schedule, *recompute_policy(recompute));
    const auto runs_out_in = [&](Bytes card) -> std::optional<int> {
      StagePlayer player(w, plan, partition.stages.front(), {}, card);
      for (int step = 1; step <= 3; ++step) {
        player.play_step(order);
        if (player.ledger().exhausted()) return step;
      }
      return std::nullopt;
    };
    const MemoryPeak free = play_memory(w, plan, schedule, partition, 0, {}).peak();
    for (Bytes card = free.allocated; card <= free.reserved; card += Bytes(2 << 20)) {
      CAPTURE(recompute, card.value);
      const std::optional<int> step = runs_out_in(card);
      CHECK(play_memory(w, plan, schedule, partition, 0, {}, card).ran_out == step.has_value());
      second += step == 2 ? 1 : 0;
      third += step == 3 ? 1 : 0;
      enough += step ? 0 : 1;
    }
  }
  CHECK(second > 0);
  CHECK(third > 0);  // else nothing here tells two steps from three
  CHECK(enough > 0);
}

}  // namespace shardwise
