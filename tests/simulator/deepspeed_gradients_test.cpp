// Where DeepSpeed's gradients lie while a step is played.
#include <vector>

#include "simulator/memory/memory_play.hpp"
#include "simulator/memory/shard_bucket.hpp"
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

// A bucket of 16 Mi elements of 16 bits, 32 MiB, which is there already. Four gradients of 8 MiB
// fill it: each lies beside it while it is copied. The fifth finds no room, so that the four leave
// through a flat tensor of 32 MiB beside it. One of 64 MiB, longer than the bucket, waits as it
// is, and leaves so beside the next one. Three ranks divide no 32 Mi elements: it is padded, in a
// copy.
TEST_CASE("ZeRO-3 reduces several gradients through one flat copy", "[shard_bucket]") {
  constexpr std::int64_t mi = 1 << 20;
  Workload w = pretraining(llama(1, 64, 2, 2, 128, 100), 64);
  w.framework.gradients.bucket = Bytes(32 * mi);
  const auto peak = [&](int ranks, const std::vector<std::int64_t>& elements) {
    ParallelPlan plan = plan_of(ranks);
    plan.zero_stage = 3;
    MemoryLedger ledger{AllocatorSettings{}};
    ShardBucket bucket(w, plan, ledger);
    for (const std::int64_t n : elements) bucket.add(n, 2, true);
    bucket.reduce();
    CHECK(ledger.allocated() == Bytes(0));
    return ledger.peak().allocated;
  };
  CHECK(peak(2, {4 * mi}) == Bytes(8 * mi));
  CHECK(peak(2, {4 * mi, 4 * mi, 4 * mi, 4 * mi, 4 * mi}) == Bytes((32 + 8) * mi));
  CHECK(peak(2, {32 * mi, 4 * mi}) == Bytes((64 + 8) * mi));
  CHECK(peak(3, {32 * mi}) == Bytes((64 + 64) * mi));
}

// On its way to the host, in the pass that the optimizer steps after, a rank's half of 32 Mi
// elements comes back in 16 bits, and its norm is taken in 8 bytes: (2 + 8) x 16 Mi beside the
// whole gradient of 64 MiB.
TEST_CASE("ZeRO-3 inspects a rank's part on its way to the host", "[shard_bucket]") {
  constexpr std::int64_t mi = 1 << 20;
  Workload w = pretraining(llama(1, 64, 2, 2, 128, 100), 64);
  w.framework.gradients.bucket = Bytes(mi);
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  plan.offload.optimizer = true;
  const auto peak = [&](bool stepped) {
    MemoryLedger ledger{AllocatorSettings{}};
    ShardBucket bucket(w, plan, ledger);
    bucket.add(32 * mi, 2, stepped);
    bucket.reduce();
    return ledger.peak().allocated;
  };
  CHECK(peak(false) == Bytes(64 * mi));
  CHECK(peak(true) == Bytes((64 + (2 + 8) * 16) * mi));
}

// Blocks of 4 h^2 + 3 h f = 16 Mi elements, 32 MiB: with a limit of 1 byte one of them is gathered
// at a time, with one of 40 MiB 8 MiB of the next as well.
TEST_CASE("ZeRO-3 gathers parameters up to its limit, not layers", "[memory_play]") {
  Workload w = pretraining(llama(4, 1024, 16, 16, 4096, 2048), 1);
  w.framework.gradients.life = GradientLife::per_step;
  w.framework.gradients.reduces_every_microbatch = true;
  w.framework.update.clones_partition = true;
  w.framework.update.fp32_gradient_at_step = false;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  plan.offload.optimizer = true;
  const auto held = [&](std::int64_t limit) {
    w.framework.sharding.parameters.live_parameters = Bytes(limit);
    return static_cast<double>(first_stage(w, plan).steady.allocated.value);
  };
  constexpr std::int64_t mib = 1 << 20;
  CHECK((held(40 * mib) - held(1)) / mib == Approx(8).epsilon(0.05));
}

}  // namespace shardwise
