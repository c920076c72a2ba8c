// What DeepSpeed's optimizers keep and take around a step: copies of gradients that stay, states
// that are there from the start, and what a reduction at the end of a step needs.
#include "simulator/memory/allocator_settings.hpp"
#include "simulator/memory/memory_play.hpp"
#include "simulator/memory/pass_buckets.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {

// fp32 gradients are 4 bytes for each weight, their 16-bit copies 2. Those are made in the first
// backward pass; in later steps they lie beside a whole forward pass, which the first step's one
// microbatch did not see: where activations make the peak, steady is that much above first_step.
// The first step's own peak is in the last layer's backward pass, once head (1,000 * 512) and down
// projection (2,048 * 512) have left theirs.
TEST_CASE("Copies of gradients may stay for the whole run", "[engine_memory]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 1000), 8192);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.copy_while_accumulating = true;
  w.framework.gradients.copy_life = GradientCopyLife::run;
  w.framework.update.states_at_start = true;
  const StageMemory one = first_stage(w, plan_of(1));
  const double copies = gib(Bytes(one.state.gradients / 2 - 2 * 512 * (1000 + 2048)));
  CHECK(gib(one.steady.allocated - one.first_step.allocated) == Approx(copies).epsilon(0.03));
  // The second microbatch of a first step does see them.
  ParallelPlan two = plan_of(1);
  two.microbatches = 2;
  const StageMemory both = first_stage(w, two);
  CHECK(gib(both.first_step.allocated) == Approx(gib(one.steady.allocated)).epsilon(0.01));
  CHECK(gib(both.steady.allocated) == Approx(gib(one.steady.allocated)).epsilon(0.01));
  // Two stages and three microbatches: F0 F1 B0 F2 B1 ... has two in flight beside the copies in
  // the first step already.
  ParallelPlan stages = plan_of(1, 1, 2);
  stages.microbatches = 3;
  const StageMemory first = first_stage(w, stages);
  CHECK(gib(first.first_step.allocated) == Approx(gib(first.steady.allocated)).epsilon(0.01));
}

// AdamW's two moments are 8 bytes for each of the weights that are stepped here.
TEST_CASE("Optimizer states may be there before the first step", "[engine_memory]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  const StageMemory later = first_stage(w, plan_of(1));
  w.framework.update.states_at_start = true;
  const StageMemory before = first_stage(w, plan_of(1));
  CHECK(gib(before.loaded - later.loaded) ==
        Approx(gib(Bytes(later.state.optimizer))).epsilon(0.01));
  CHECK(before.steady.allocated == later.steady.allocated);
}

// fp32 gradients sent in 16 bits, as one tensor: half their bytes beside them. ZeRO-1's own
// gradients go through a bucket, of 1,000 bytes here; one rank alone sends nothing.
TEST_CASE("A reduction at the end of a step takes a copy of what it sends", "[engine_memory]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.reduce_dtype = DType::bf16;
  LayerState total;
  total.gradients = 4000;
  total.unsharded_gradients = 4000;
  CHECK(reduced_at_end(w, plan_of(2), total) == 0);
  w.framework.gradients.reduces_flat_gradient = true;
  CHECK(reduced_at_end(w, plan_of(2), total) == 2000);
  CHECK(reduced_at_end(w, plan_of(1), total) == 0);
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.gradients.reduce_buffers = 1;
  w.framework.gradients.bucket = Bytes(1000);
  ParallelPlan one = plan_of(2);
  one.zero_stage = 1;
  CHECK(pass_buffers(w, one, total) == std::vector<std::int64_t>{1000});
  CHECK(reduced_at_end(w, one, total) == 0);
  w.framework.gradients.buffers_from_stage_2 = true;
  CHECK(pass_buffers(w, one, total).empty());
  CHECK(reduced_at_end(w, one, total) == 1000);
  one.zero_stage = 2;
  CHECK(pass_buffers(w, one, total) == std::vector<std::int64_t>{1000});
  CHECK(run_buffers(w, one, total).empty());
}

// Each context rank has seen a part of the sequence, so gradients are reduced over both kinds of
// ranks: four data ranks or two of two context ranks or one of four take the same bytes. DDP's
// buckets are as many bytes as its 16-bit gradients, the bucket is shorter (1,000), and what is
// reduced at the end in half the width is half of the 4,000.
TEST_CASE("Context ranks reduce gradients as data ranks do", "[engine_memory]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.bucket = Bytes(1000);
  w.framework.gradients.reduce_buffers = 1;
  LayerState total;
  total.gradients = 4000;
  total.unsharded_gradients = 4000;
  for (const auto& [data, context] : {std::pair{4, 1}, std::pair{2, 2}, std::pair{1, 4}}) {
    ParallelPlan p = plan_of(data);
    p.context = context;
    Workload ddp = w;
    ddp.framework.gradients.bucket_copies = true;
    ddp.framework.gradients.life = GradientLife::persistent;
    CHECK(run_buffers(ddp, p, total) == std::vector<std::int64_t>{4000, 1000});
    ddp.framework.gradients.dtype = DType::fp32;
    ddp.framework.gradients.reduce_dtype = DType::bf16;
    ddp.framework.gradients.reduces_flat_gradient = true;
    CHECK(reduced_at_end(ddp, p, total) == 2000);
    p.zero_stage = 1;
    CHECK(pass_buffers(w, p, total) == std::vector<std::int64_t>{1000});
    // ZeroRedundancyOptimizer steps what DDP has reduced in its buckets.
    CHECK(run_buffers(ddp, p, total) == std::vector<std::int64_t>{4000});
  }
}

// 8,192 bytes of gradients, 2,048 of each of four ranks, through a bucket of 3,072: the first two
// fillings hold parts of two ranks' shares and are copied flat, the last 2,048 are one's alone. So
// 3,072 stand during the pass and twice that while one is reduced, nothing once it is over. On
// one rank nothing is copied.
TEST_CASE("A bucket of several ranks' shares is reduced through a flat copy", "[engine_memory]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.bucket = Bytes(3072);
  w.framework.gradients.reduce_buffers = 1;
  w.framework.gradients.stage_2_all_reduces = true;
  LayerState total;
  total.unsharded_gradients = 8192;
  for (const int ranks : {4, 1}) {
    ParallelPlan p = plan_of(ranks);
    p.zero_stage = 2;
    MemoryLedger ledger(allocator_settings(w.framework), std::nullopt);
    PassBuckets buckets(w, p, ledger);
    buckets.begin(total);
    CHECK(ledger.allocated() == Bytes(3072));
    buckets.fill(8192);
    CHECK(ledger.allocated() == Bytes(3072));
    buckets.end();
    CHECK(ledger.allocated() == Bytes(0));
    CHECK(ledger.most_allocated() == Bytes(ranks == 4 ? 6144 : 3072));
  }
}

// Two microbatches of 64 tokens. The second one's gradients (9.4 million weights, 1.05 of them in
// the largest matrix) go into the first one's as they are made; of a compiled model all of them
// come at the end, which adds all but about the largest.
TEST_CASE("A compiled model's gradients come out together", "[engine_memory]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 1000), 64);
  w.framework.layers.kernels = KernelStyle::compiled;
  ParallelPlan p = plan_of(1);
  p.microbatches = 2;
  const StageMemory in_turn = first_stage(w, p);
  w.framework.layers.compiles_whole_model = true;
  const StageMemory together = first_stage(w, p);
  const double more = gib(together.steady.allocated - in_turn.steady.allocated);
  CHECK(more > 0.7 * gib(Bytes(in_turn.state.gradients)));
  CHECK(more <= gib(Bytes(in_turn.state.gradients)));
}

}  // namespace shardwise
