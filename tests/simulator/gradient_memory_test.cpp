// How long gradients live in a play of memory: their copies, their buckets, and those that are
// stepped as soon as they are made.
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/memory/memory_play.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {

// fp32 gradients that are reduced in 16 bits: the result has 2 bytes for each of their 4.
TEST_CASE("A reduction's result is a tensor of its own, in its own format", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.reduce_dtype = DType::fp16;
  const StageMemory without = first_stage(w, plan_of(2));
  w.framework.gradients.bucket_copies = true;
  CHECK(first_stage(w, plan_of(2)).loaded == without.loaded + Bytes(without.state.gradients / 2));
}

// The 16-bit copies of 4-byte gradients have 2 bytes for each of their 4; they are still there when
// the step has ended, where a layer's would have gone with the layer.
TEST_CASE("Copies of gradients may stay until the next backward", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.copy_while_accumulating = true;
  const StageMemory without = first_stage(w, plan_of(1));
  w.framework.gradients.copy_life = GradientCopyLife::next_backward;
  const StageMemory with = first_stage(w, plan_of(1));
  // Blocks whose remainder is at most 1 MiB are handed out whole.
  CHECK(gib(with.after_step - without.after_step) ==
        Approx(gib(Bytes(without.state.gradients / 2))).epsilon(0.03));
  // The head's matrix, 32000 x 512, is widened to fp32 when all copies are there.
  CHECK(with.steady.allocated >= with.after_step + Bytes(4 * 32000 * 512));
}

// When backward ends all gradients are there, and of the tied table, 32000 x 512 in 16 bits, the
// head's, the embedding's and their sum. 64 tokens leave little else.
TEST_CASE("A tied table's gradients wait for each other", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 32000), 64);
  w.model.tied_embeddings = true;
  const StageMemory tied = first_stage(w, plan_of(1));
  CHECK(gib(tied.steady.allocated - tied.after_step) ==
        Approx(gib(Bytes(tied.state.gradients + 2 * 2 * 32000 * 512))).epsilon(0.02));
  w.framework.gradients.fusion = true;  // each is added as it is made
  CHECK(first_stage(w, plan_of(1)).steady.allocated < tied.steady.allocated);
}

// Two microbatches are in flight on the first of two stages again after the first has gone back and
// has made the gradients: as much as where those are always there.
TEST_CASE("Gradients of a step stand beside all microbatches in flight", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 32000), 2048);
  ParallelPlan plan = plan_of(1, 1, 2);
  plan.microbatches = 4;
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.fusion = true;
  const double always = gib(first_stage(w, plan).steady.allocated);
  w.framework.gradients.life = GradientLife::per_step;
  CHECK(gib(first_stage(w, plan).steady.allocated) == Approx(always).epsilon(0.02));
}

// At the end of a step all gradients stand beside weights and states; stepped as they are made, one
// at a time does. Without them little is left of 64 tokens: 64 x 32000 logits in 14 bytes are 27
// MiB, the largest gradient is 31 MiB, all of them are 93 MiB.
TEST_CASE("Gradients that are stepped in backward never stand together", "[memory_play]") {
  Workload w = pretraining(llama(8, 512, 8, 8, 2048, 32000), 64);
  const StageMemory kept = first_stage(w, plan_of(1));
  w.framework.gradients.life = GradientLife::in_backward;
  const StageMemory stepped = first_stage(w, plan_of(1));
  CHECK(stepped.after_step == kept.after_step);
  CHECK(kept.steady.allocated >= kept.after_step + Bytes(kept.state.gradients));
  CHECK(stepped.steady.allocated < stepped.after_step + Bytes(kept.state.gradients * 3 / 4));
}

// LOMO widens a gradient and its weight when the next gradient is there: 4 + 4 bytes for each
// element of the largest weight, a head of 32000 x 512, and AdaLomo a third such tensor. The head
// is stepped first, beside the weights and what 64 tokens keep of two layers (a few MiB).
TEST_CASE("Optimizers that step in backward widen one tensor at a time", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 64);
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  const auto played = [&](const char* optimizer) {
    w.step_with(*optimizer_named(optimizer));
    return first_stage(w, plan_of(1));
  };
  const std::int64_t table = 32000 * 512;
  const StageMemory lomo = played("lomo");
  CHECK(lomo.state.optimizer == 0);
  const std::int64_t few = 8 << 20;
  const auto beside = [](const StageMemory& m) {
    return (m.steady.allocated - m.after_step).value;
  };
  CHECK(beside(lomo) >= 8 * table);
  CHECK(beside(lomo) < 8 * table + few);
  const StageMemory adalomo = played("adalomo");
  CHECK(beside(adalomo) >= 12 * table);
  CHECK(beside(adalomo) < 12 * table + few);
  CHECK(adalomo.state.optimizer > 0);
  CHECK(gib(Bytes(adalomo.state.optimizer)) < 0.001);
}

// A bucket of 1 GiB is 1 GiB from ZeRO-2 on, with one GPU as well; before, it is as long as the
// gradients that it takes. It stands in backward passes alone, whose end is the peak then: half of
// it takes half a GiB less.
TEST_CASE("Buckets are as long as configured from ZeRO-2 on", "[memory_play]") {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.framework.gradients.bucket = Bytes(1 << 30);
  ParallelPlan one = plan_of(1), two = plan_of(2);
  one.zero_stage = 2;
  two.zero_stage = 1;
  const StageMemory alone = first_stage(w, one), apart = first_stage(w, two);
  w.framework.gradients.reduce_buffers = 1;
  const std::vector<std::int64_t> all{apart.state.unsharded_gradients};
  CHECK(pass_buffers(w, two, apart.state) == all);
  const StageMemory whole = first_stage(w, one);
  CHECK(whole.loaded == alone.loaded);
  w.framework.gradients.bucket_stage_2 = Bytes(1 << 29);
  CHECK(whole.steady.allocated - first_stage(w, one).steady.allocated == Bytes(1 << 29));
  CHECK(pass_buffers(w, two, apart.state) == all);
}

}  // namespace shardwise
