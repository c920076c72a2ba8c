// The memory play: what the allocator's stream of a step depends on beside the plan.
#include "simulator/memory_play.hpp"

#include "simulator/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

struct Played {
  Workload workload;
  ParallelPlan plan = plan_of(1);
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  RecomputePolicy policy;
  ModelPartition partition;

  Played(int sequence, const std::string& recompute)
      : workload(pretraining(llama(4, 512, 8, 8, 2048, 32000), sequence)),
        policy(*recompute_policy(recompute)),
        partition(partition_model(workload, plan, schedule, policy)) {}

  StageMemory play(const PlayVariation& variation = {}) const {
    return play_memory(workload, plan, schedule, partition, 0, {}, std::nullopt, variation);
  }
};

std::int64_t logit_bytes(const Workload& w) {
  std::int64_t sum = 0;
  for (const Tensor& t : head_graph(w, plan_of(1), false).tensors)
    if (t.category == MemoryCategory::logits) sum += t.bytes;
  return sum;
}

}  // namespace

// A batch of half the length leaves blocks that one of full length cannot use: the fp32 logits of
// 1024 tokens are 1024 x 32000 x 4 B = 125 MiB, those of 2048 tokens twice that. The optimizer's
// states, which would move into what is left, are on the host; small tensors take some of it.
TEST_CASE("Batches of unlike length leave cached blocks behind", "[memory_play]") {
  Played full(2048, "none"), half(1024, "none");
  full.plan.offload.optimizer = half.plan.offload.optimizer = true;
  const StageMemory alone = full.play();
  const StageMemory after = full.play({{}, {&half.partition}});
  // Blocks whose remainder is at most 1 MiB are handed out whole: that may differ.
  CHECK(gib(after.steady.allocated) == Approx(gib(alone.steady.allocated)).epsilon(0.02));
  CHECK(after.steady.reserved >= alone.steady.reserved + Bytes(100 << 20));
  CHECK(after.steady.reserved <= alone.steady.reserved + half.play().steady.reserved);
}

TEST_CASE("One block in two is checkpointed, the first of each pair", "[memory_play]") {
  const Played run(256, "one-in-2-layers");
  const ModelChunk& chunk = run.partition.stages.front().front();
  REQUIRE(chunk.layers.size() == 6);  // embedding, four blocks, head
  for (std::size_t block = 0; block < 4; ++block)
    CHECK(chunk.layers[1 + block].definition->checkpointed == (block % 2 == 0));
}

// 2 B of 16-bit logits, and eagerly 4 B each of their fp32 copy and the log-softmax, per token and
// word; the loss itself has 4 B.
TEST_CASE("A compiled loss keeps the 16-bit logits only", "[memory_play]") {
  Workload w = pretraining(llama(1, 256, 4, 4, 1024, 1000), 64);
  w.framework.loss = LossKind::dense;
  CHECK(logit_bytes(w) == 64 * 1000 * 10 + 4);
  w.framework.kernels = KernelStyle::compiled;
  w.framework.compiles_loss = true;
  CHECK(logit_bytes(w) == 64 * 1000 * 2 + 4);
}

}  // namespace shardwise
