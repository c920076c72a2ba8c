// Units that are gathered and reduced as one while memory is played, and those that stay gathered.
#include <vector>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/gathered_layers.hpp"
#include "simulator/memory/memory_play.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

ParallelPlan zero_3() {
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  return plan;
}

}  // namespace

// One layer gathered in 16 bits: 4 h^2 + 3 h f and two norms.
TEST_CASE("A loss outside the model runs before the last layer is gathered", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 2048, 32000), 2048);
  const ParallelPlan plan = zero_3();
  const Bytes before = first_stage(w, plan).steady.allocated;
  w.framework.sharding.parameters.prefetches_after_loss = true;
  const Bytes after = first_stage(w, plan).steady.allocated;
  CHECK(before - after == Bytes(2 * (4 * 512 * 512 + 3 * 512 * 2048 + 2 * 512)));
}

// A table of 32000 x 512 in 16 bits, which is not there when logits are: with 2,048 tokens these
// are the most. Its block of the allocator is larger, by less than 2 MiB.
TEST_CASE("An embedding that is a unit goes back to shards", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 1024, 32000), 2048);
  const ParallelPlan plan = zero_3();
  const Bytes root = first_stage(w, plan).steady.allocated;
  w.framework.sharding.parameters.embedding_is_unit = true;
  const Bytes less = root - first_stage(w, plan).steady.allocated;
  CHECK(less >= Bytes(2 * 32000 * 512));
  CHECK(less < Bytes(2 * 32000 * 512 + (2 << 20)));
}

// Between its two uses lie two times the blocks and the head, 2 (4 (4 h^2 + 3 h f + 2 h) + h +
// 32000 h) = 54 million elements. DeepSpeed gathers for backward what has a gradient to pass on.
TEST_CASE("DeepSpeed lets an embedding go that is not wanted soon", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 1024, 32000), 64);
  ParallelPlan plan = zero_3();
  CHECK_FALSE(embedding_gathers(w, plan).goes);
  w.framework.sharding.fetch_reuse_elements = 55'000'000;
  CHECK_FALSE(embedding_gathers(w, plan).goes);
  w.framework.sharding.fetch_reuse_elements = 53'000'000;
  CHECK(embedding_gathers(w, plan).goes);
  CHECK(embedding_gathers(w, plan).again);
  w.method = Method::lora;
  CHECK(embedding_gathers(w, plan).goes);
  CHECK_FALSE(embedding_gathers(w, plan).again);
  plan.recompute = "full";  // reentrant: the input of the first checkpoint has a gradient
  CHECK(embedding_gathers(w, plan).again);
  w.method = Method::pretrain;
  w.model.tied_embeddings = true;
  CHECK_FALSE(embedding_gathers(w, plan).goes);
}

// A block has 4 h^2 + 3 h f + 2 h = 2,622,464 elements, the head with its norm 32000 h + h =
// 16,384,512: with two blocks 43,258,880 bytes. From the middle of the last block to its backward
// lie 2 x 16,384,512 + 2,622,464 = 35,391,488 elements, of that before 5,244,928 more, 40,636,416;
// where blocks run again 36,702,720 and 44,570,112.
TEST_CASE("DeepSpeed keeps the last layers gathered from forward to backward", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 1024, 32000), 64);
  w.framework.sharding.parameters.reshard_after_forward = true;
  ParallelPlan plan = zero_3();
  const auto kept = [&](const char* recompute, std::int64_t live, std::int64_t reuse) {
    plan.recompute = recompute;
    w.framework.sharding.parameters.live_parameters = Bytes(live);
    w.framework.sharding.fetch_reuse_elements = reuse;
    const ModelPartition partition =
        partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy(recompute));
    return layers_kept_gathered(w, plan, partition.stages[0][0].layers);
  };
  using Kept = std::vector<bool>;
  const Kept none(6), one{false, false, false, false, true, false},
      two{false, false, false, true, true, false};
  CHECK(kept("none", 43'258'880, 0) == two);
  CHECK(kept("none", 43'258'879, 0) == one);
  CHECK(kept("none", 1, 35'391'488) == none);
  CHECK(kept("none", 1, 35'391'489) == one);
  CHECK(kept("none", 1, 40'636'417) == two);
  CHECK(kept("full", 1, 40'636'417) == one);
  CHECK(kept("full", 1, 36'702'720) == none);
  // What is kept is not gathered again.
  kept("none", 43'258'880, 0);
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  const Cluster cluster = parse_gpus(known_facts().catalog, "2xA100-80GB")->front();
  const CostModel model(w, plan, cluster, known_facts().profile);
  const StepCosts costs = model.costs(partition);
  const auto& layers = costs.stages.front().chunks[0];
  CHECK(layers[2].gather_backward);
  CHECK_FALSE(layers[3].gather_backward);
  CHECK(*layers[3].gather_forward == *layers[2].gather_forward);
  plan.pipeline = 2;
  CHECK_FALSE(keeps_layers_gathered(w, plan));
}

// Three blocks of 5,244,928 bytes are fewer than 20 MB, so that the head of 32.8 MB is fetched
// beside them in forward, and the embedding beside the last three of backward; where one byte is
// the limit, a table is alone. 8 tokens have 2 MB of logits at most.
TEST_CASE("DeepSpeed fetches a table beyond its limit of what is gathered", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 1024, 32000), 8);
  w.method = Method::lora;
  w.framework.sharding.fetch_reuse_elements = 0;
  ParallelPlan plan = zero_3();
  plan.recompute = "full";
  const auto allocated = [&](std::int64_t live) {
    w.framework.sharding.parameters.live_parameters = Bytes(live);
    return first_stage(w, plan).steady.allocated.value;
  };
  const std::int64_t more = allocated(20'000'000) - allocated(1);
  CHECK(more > 2 * 5'244'928);
  CHECK(more < 3 * 5'244'928 + (2 << 20));
}

// Six blocks of 14.7 MB and the head of 32.8 MB are 120.9 MB on the gathers' stream where
// overlap_comm makes one; when logits are there, the head and four blocks, so that they find two
// blocks' memory free where there is one stream only. A segment grows by 20 MiB.
TEST_CASE("What DeepSpeed gathers beside the passes stays with its stream", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 4096, 32000), 2048);
  w.method = Method::lora;
  w.framework.sharding.fetch_reuse_elements = 0;
  w.framework.process.expandable_segments = true;
  w.framework.sharding.parameters.live_parameters = Bytes(100'000'000);
  ParallelPlan plan = zero_3();
  plan.recompute = "full";
  const StageMemory apart = first_stage(w, plan);
  w.framework.gradients.overlap_reduce_at_stage_3 = false;
  const StageMemory one = first_stage(w, plan);
  CHECK(apart.steady.allocated == one.steady.allocated);
  const std::int64_t more = (apart.steady.reserved - one.steady.reserved).value;
  CHECK(more > 0);
  CHECK(more < 2 * 14'682'112 + (20 << 20));
}

// Two tables of 32000 x 512, 64 tokens. Apart, most is there when the head's gradient (2 B each) is
// reduced from an fp32 copy (4 B), beside the embedding, which stays gathered (2 B); together, both
// gradients go into one such copy when nothing is gathered any more: 12 B in place of 8.
TEST_CASE("A root that holds both ends reduces them together", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 1024, 32000), 64);
  w.framework.gradients.reduce_dtype = DType::fp32;
  const ParallelPlan plan = zero_3();
  const StageMemory apart = first_stage(w, plan);
  w.framework.sharding.parameters.root_holds_ends = true;
  const StageMemory root = first_stage(w, plan);
  CHECK(gib(root.steady.allocated - apart.steady.allocated) ==
        Approx(gib(Bytes(4 * 32000 * 512))).epsilon(0.1));
}

// The root has the table that is a head too, and nothing of two tables that are units.
TEST_CASE("An embedding that is a unit is in the root where it is tied", "[memory_play]") {
  const auto allocated = [](bool tied, bool root, bool unit) {
    Workload w = pretraining(llama(2, 512, 8, 8, 1024, 32000), 64);
    w.model.tied_embeddings = tied;
    w.framework.gradients.reduce_dtype = DType::fp32;
    w.framework.sharding.parameters.root_holds_ends = root;
    w.framework.sharding.parameters.embedding_is_unit = unit;
    return first_stage(w, zero_3()).steady.allocated.value;
  };
  CHECK(allocated(false, true, true) == allocated(false, false, true));
  CHECK(allocated(false, true, false) > allocated(false, true, true));
  CHECK(allocated(true, true, true) == allocated(true, true, false));
}

// Two tables of 32000 x 512 in 16 bits are one unit. What it is gathered into stays with the
// gathers' stream, of which no other tensor takes: 62.5 MiB more are reserved than where weights
// are gathered in place. The buffers of blocks, of 5 MiB, fit into it when it is free again, but
// for the first one's, made before; a segment grows by 20 MiB. Frozen weights leave no gradients
// that lie on a third stream.
TEST_CASE("What a unit is gathered into stays with the stream of the gathers", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 1024, 32000), 2048);
  w.method = Method::lora;
  w.framework.sharding.parameters.root_holds_ends = true;
  w.framework.process.expandable_segments = true;
  const ParallelPlan plan = zero_3();
  const StageMemory in_place = first_stage(w, plan);
  w.framework.sharding.parameters.copy_out = true;
  const StageMemory copied = first_stage(w, plan);
  const double unit = gib(Bytes(2 * 2 * 32000 * 512));
  const double block = gib(Bytes(2 * (4 * 512 * 512 + 3 * 512 * 1024 + 2 * 512)));
  const double more = gib(copied.steady.reserved) - gib(in_place.steady.reserved);
  CHECK(more > unit);
  CHECK(more < unit + block + gib(Bytes(20 << 20)));
}

// The root's two tables in 16 bits to the end of backward, and at most one block beside them; there
// is nothing to gather, so no buffer.
TEST_CASE("FSDP2 on one rank copies fp32 weights to 16 bits unit by unit", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 1024, 32000), 2048);
  w.method = Method::lora;
  w.framework.formats.frozen_dtype = DType::fp32;
  w.framework.adapters.dtype = DType::bf16;
  w.framework.sharding.parameters.root_holds_ends = w.framework.sharding.parameters.copy_out = true;
  const StageMemory plain = first_stage(w, plan_of(1));
  w.framework.sharding.wraps_one_rank = true;
  const StageMemory wrapped = first_stage(w, plan_of(1));
  const double unit = gib(Bytes(2 * 2 * 32000 * 512));
  const double block = gib(Bytes(2 * (4 * 512 * 512 + 3 * 512 * 1024 + 2 * 512)));
  const double more = gib(wrapped.steady.allocated) - gib(plain.steady.allocated);
  CHECK(more >= unit);
  CHECK(more < unit + 1.01 * block);
}

// Two ranks have half of the weights each, 1 B per element of 16 bits; FSDP's stage 2 does as well,
// and then is stage 3 without resharding.
TEST_CASE("FSDP's stage 2 keeps what it has gathered until backward", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 2048, 32000), 256);
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 2;
  const StageMemory whole = first_stage(w, plan);
  w.framework.sharding.stage_2_gathers = true;
  const StageMemory gathered = first_stage(w, plan);
  CHECK(whole.state.weights == 2 * gathered.state.weights);
  CHECK(gib(whole.loaded - gathered.loaded) ==  // but for what blocks are rounded up to
        Approx(gib(Bytes(gathered.state.weights))).epsilon(0.02));
  plan.zero_stage = 3;
  const StageMemory resharded = first_stage(w, plan);
  w.framework.sharding.parameters.reshard_after_forward = false;
  const StageMemory kept = first_stage(w, plan);
  CHECK(gathered.steady.allocated == kept.steady.allocated);
  CHECK(gathered.steady.allocated > resharded.steady.allocated);
}

}  // namespace shardwise
