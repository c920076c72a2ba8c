#include "planner/report/layout_words.hpp"

#include "tests/catch.hpp"

namespace shardwise {

// 64 ranks in groups of 8 hold eighths of the model, not 64ths.
TEST_CASE("a plan in words says over how many GPUs it shards, of how many") {
  ParallelPlan p;
  CHECK(layout_words(p) == "one GPU");
  p.data = 64;
  CHECK(layout_words(p) == "data parallel over 64 GPUs");
  p.zero_stage = 3;
  CHECK(layout_words(p) == "fully sharded (FSDP) over 64 GPUs");
  p.shard_group = 8;
  CHECK(layout_words(p) == "fully sharded (FSDP) within groups of 8 of 64 GPUs (HSDP)");
  p.tensor = 4;
  CHECK(layout_words(p) ==
        "tensor parallel 4, fully sharded (FSDP) within groups of 8 of 64 GPUs (HSDP)");
}

TEST_CASE("what lies in host RAM is said in words") {
  ParallelPlan p;
  CHECK(offload_words(p).empty());
  p.offload = {true, true, false};
  CHECK(offload_words(p) == "weights, optimizer");
  p.offload = {false, false, true};
  p.recompute = "full";
  CHECK(offload_words(p) == "layers' inputs");
}

}  // namespace shardwise
