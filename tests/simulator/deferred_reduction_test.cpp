// Gradients that a pipeline's runtime leaves whole until the last microbatch.
#include "simulator/costs/cost_model.hpp"
#include "simulator/memory/memory_play.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// FSDP2 over two ranks and two stages: 16-bit gradients of fp32 shards, reduced in fp32.
Workload fsdp(bool reduces_once) {
  Workload w = pretraining(llama(8, 256, 4, 4, 1024, 512), 128);
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.gradients.reduce_dtype = DType::fp32;
  w.framework.gradients.reduces_every_microbatch = true;
  w.framework.gradients.accumulates_in_reduce_dtype = true;
  w.framework.sharding.parameters.reshard_with_pipeline = false;
  w.framework.gradients.pipelines_reduce_once = reduces_once;
  return w;
}

ParallelPlan stages_of(int stages) {
  ParallelPlan plan = plan_of(2, 1, stages);
  plan.zero_stage = 3;
  plan.microbatches = 4;
  return plan;
}

// What the gradients of the last stage take when the step's last forward pass has ended.
std::int64_t waiting(const Workload& w, const ParallelPlan& plan) {
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  const ModelPartition partition =
      partition_model(w, plan, schedule, *recompute_policy(plan.recompute));
  const StageMemory m =
      play_memory(w, plan, schedule, partition, plan.pipeline - 1, {}, std::nullopt);
  return m.after_forward[static_cast<std::size_t>(MemoryCategory::gradients)];
}

}  // namespace

// Four blocks of 4 h^2 + 3 h f parameters, 1,048,576 each, and a head of 512 h, 131,072 more: whole
// and in fp32 17.3 MB, sharded over two ranks half of it. Norms are 0.1 % of that.
TEST_CASE("with stages gradients may wait whole for the last microbatch", "[memory_play]") {
  const double parameters = 4 * 1048576 + 131072;
  CHECK(static_cast<double>(waiting(fsdp(true), stages_of(2))) ==
        Approx(4 * parameters).epsilon(0.002));
  CHECK(static_cast<double>(waiting(fsdp(false), stages_of(2))) ==
        Approx(2 * parameters).epsilon(0.002));
}

TEST_CASE("without stages they are reduced with every microbatch", "[memory_play]") {
  CHECK(waiting(fsdp(true), stages_of(1)) == waiting(fsdp(false), stages_of(1)));
  CHECK(reduces_every_microbatch(fsdp(true).framework, stages_of(1)));
  CHECK_FALSE(reduces_every_microbatch(fsdp(true).framework, stages_of(2)));
  ParallelPlan whole = stages_of(1);
  whole.zero_stage = 1;  // nothing is sharded that could be reduced
  CHECK_FALSE(reduces_every_microbatch(fsdp(false).framework, whole));
}

// Megatron-FSDP: fp32 gradients that stay for the run, as shards. Each microbatch is reduced, for
// there is nowhere to add up whole ones: 4 microbatches of 4 layers, not 4 layers once.
TEST_CASE("shards that persist are reduced with every microbatch", "[costs]") {
  Workload w = fsdp(false);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.reduces_every_microbatch = false;
  for (const int stage : {2, 3}) {
    ParallelPlan plan = stages_of(1);
    plan.zero_stage = stage;
    CHECK(reduces_every_microbatch(w.framework, plan));
    plan.pipeline = 2;
    CHECK(reduces_every_microbatch(w.framework, plan));
    plan.zero_stage = 1;
    CHECK_FALSE(reduces_every_microbatch(w.framework, plan));
  }
}

}  // namespace shardwise
