// Where DeepSpeed's gradients lie while a step is played.
#include "simulator/memory/memory_play.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {

// A table of 64 Ki x 512 elements, 32 Mi, in ZeRO-2 on two ranks with the optimizer on the host:
// beside its gradient lie a buffer for it, 64 MiB, and 11 bytes for each element while it is looked
// at. There is next to nothing else: one token's logits, and weights that are there either way.
TEST_CASE("A gradient is inspected before it goes to the host", "[memory_play]") {
  Workload w = pretraining(llama(1, 512, 8, 8, 64, 64 << 10), 1);
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 2;
  plan.offload.optimizer = true;
  const Bytes unseen = first_stage(w, plan).steady.allocated;
  w.framework.update.clones_partition = true;
  const Bytes seen = first_stage(w, plan).steady.allocated;
  CHECK(gib(seen - unseen) == Approx((2 + 11) * 32.0 / 1024).epsilon(0.1));
  plan.zero_stage = 3;
  CHECK(first_stage(w, plan).steady.allocated < seen);
}

// DeepSpeed on one rank, its optimizer on the host: there, too, gradients leave the GPU as they
// come. Where they stay, those of four blocks, each 4 h^2 + 3 h f = 4 Mi parameters in 16 bits, and
// of the two tables stand together at the end of backward; where they go, no more than the largest,
// a table of 32000 x 512 with what inspects it (13 bytes of each element, see above).
TEST_CASE("One rank's offloaded gradients do not stay on the GPU", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 2048, 32000), 1);
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.gradients.reduces_every_microbatch = true;
  ParallelPlan plan = plan_of(1);
  plan.zero_stage = 2;
  plan.offload.optimizer = true;
  const double table = 2.0 * 32000 * 512, blocks = 2.0 * 4 * (4 << 20);
  const auto held = [&] {
    const StageMemory m = first_stage(w, plan);
    return static_cast<double>((m.steady.allocated - m.loaded).value);
  };
  CHECK(held() > blocks + 2 * table);
  w.framework.update.clones_partition = true;
  CHECK(held() < (1 + 6.5) * table + 0.25 * blocks);
}

// A rank's share of the gradients, in 16 bits, of four blocks, each 4 h^2 + 3 h f = 4 Mi
// parameters, and of two tables of 32000 x 512, over two ranks: it lies there before the first
// step. With the optimizer on the host it lies there, too. A block whose remainder is at most
// 1 MiB is handed out whole, here to the one and there to the other.
TEST_CASE("DeepSpeed's ZeRO-3 makes room for gradients when it starts", "[memory_play]") {
  Workload w = pretraining(llama(4, 512, 8, 8, 2048, 32000), 1);
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.sharding.parameters.live_parameters = Bytes(2'000'000'000);
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  const auto loaded = [&](bool deepspeed) {
    w.framework.update.clones_partition = deepspeed;
    return first_stage(w, plan).loaded;
  };
  const double share = 2.0 * (4 * (4 << 20) + 2 * 32000 * 512) / 2;
  CHECK(static_cast<double>((loaded(true) - loaded(false)).value) == Approx(share).epsilon(0.02));
  plan.offload.optimizer = true;
  CHECK(loaded(true) == loaded(false));
}

}  // namespace shardwise
