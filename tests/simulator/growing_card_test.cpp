// A play on a card that grows by what it misses.
#include "simulator/memory/memory_play.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

struct OneGpu {
  Workload workload;
  ParallelPlan plan = plan_of(1);
  const PipelineSchedule& schedule = *find_pipeline_schedule("1f1b");
  RecomputePolicy policy;
  ModelPartition partition;

  OneGpu(int sequence, const std::string& recompute)
      : workload(pretraining(llama(4, 512, 8, 8, 2048, 32000), sequence)),
        policy(*recompute_policy(recompute)),
        partition(partition_model(workload, plan, schedule, policy)) {}

  StageMemory play(std::optional<Bytes> capacity, bool grows = false) const {
    PlayVariation how;
    how.raises_capacity = grows;
    return play_memory(workload, plan, schedule, partition, 0, {}, capacity, how);
  }
};

}  // namespace

// It ends between what tensors hold at their peak, where it began, and what the allocator takes
// where nobody stops it. A card of that size from the beginning gives its cache back later, and may
// lack a segment or two of 20 MiB for it.
TEST_CASE("what a play misses on a card that grows is what it needs", "[memory_play]") {
  int grew = 0;
  for (const int sequence : {512, 1024, 3072, 8192})
    for (const char* recompute : {"none", "selective-op", "full"}) {
      CAPTURE(sequence, recompute);
      const OneGpu gpu(sequence, recompute);
      const MemoryPeak free = gpu.play(std::nullopt).peak();
      const StageMemory grown = gpu.play(free.allocated, true);
      CHECK_FALSE(grown.ran_out);
      const Bytes least = *grown.capacity;
      CHECK(least >= free.allocated);
      CHECK(least <= free.reserved);
      CHECK_FALSE(gpu.play(least + Bytes(40 << 20)).ran_out);
      if (least == free.allocated) continue;
      ++grew;
      CHECK(gpu.play(free.allocated).ran_out);
    }
  CHECK(grew > 6);
}

TEST_CASE("a card that is large enough does not grow", "[memory_play]") {
  const OneGpu gpu(1024, "none");
  const Bytes enough = gpu.play(std::nullopt).peak().reserved;
  CHECK(*gpu.play(enough, true).capacity == enough);
}

}  // namespace shardwise
