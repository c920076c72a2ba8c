// What DeepSpeed's ZeRO copies around its reductions.
#include <optional>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

constexpr int ranks = 4;

// A block of q, k, v and o of 1,024 x 1,024, gate, up and down of 4,096 x 1,024, and two norms.
constexpr double square = 4.0 * 1024 * 1024, oblong = 3.0 * 4096 * 1024, of_norms = 2.0 * 1024;

Workload deepspeed(bool copies) {
  Workload w = pretraining(llama(1, 1024, 8, 8, 4096, 4096), 256);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.gradients.reduces_every_microbatch = true;
  w.framework.gradients.reduce_dtype = DType::bf16;
  w.framework.gradients.copies_into_buckets = copies;
  return w;
}

struct BlockTime {
  Seconds backward, reduce;
};

BlockTime times_of_block(const Workload& w, int stage, int microbatches) {
  const Cluster cluster = parse_gpus(known_facts().catalog, "4xA100-SXM-80GB")->front();
  ParallelPlan plan = plan_of(ranks);
  plan.zero_stage = stage;
  plan.microbatches = microbatches;
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  const CostModel model(w, plan, cluster, known_facts().profile);
  const StepCosts costs = model.costs(partition);
  const LayerSchedule& block = costs.stages.front().chunks.front()[1];
  return {block.time.backward_weight.compute, block.reduce.value_or(Seconds(0))};
}

// What the flag adds, with buckets of so many elements; the head, of 4,096 x 1,024, fills one.
BlockTime added(int stage, int microbatches, double bucket,
                const std::optional<MixtureOfExperts>& experts = std::nullopt) {
  const auto with = [&](bool copies) {
    Workload w = deepspeed(copies);
    w.model.moe = experts;
    w.framework.experts.loops = experts.has_value();
    w.framework.gradients.bucket = Bytes(static_cast<std::int64_t>(2 * bucket));
    return times_of_block(w, stage, microbatches);
  };
  const BlockTime plain = with(false), copied = with(true);
  return {copied.backward - plain.backward, copied.reduce - plain.reduce};
}

// So many elements of 16 bits read or written.
double moving(double elements) {
  const Gpu gpu = parse_gpus(known_facts().catalog, "4xA100-SXM-80GB")->front().groups.front().gpu;
  const KernelModel kernels(gpu, known_facts().profile,
                            {std::nullopt, KernelStyle::eager, ChipLoad{ranks}});
  return kernels.memory_bound(Bytes(static_cast<std::int64_t>(2 * elements))).value;
}

}  // namespace

// Stage 3 with room for everything: each gradient is read and written three times (copied, joined,
// divided), and a rank's quarter once more; of four microbatches three add to it, which reads what
// is there as well. With room for the square matrices alone the three others are divided only.
TEST_CASE("ZeRO-3 copies, joins and divides gradients before it reduces them", "[cost]") {
  const double all = square + oblong + of_norms;
  CHECK(added(3, 1, 1e9).reduce.value == Approx(moving(6 * all + 2 * all / ranks)).epsilon(0.001));
  CHECK(added(3, 4, 1e9).reduce.value ==
        Approx(moving(6 * all + (2 + 0.75) * all / ranks)).epsilon(0.001));
  CHECK(added(3, 1, 1.2e6).reduce.value ==
        Approx(moving(2 * all + 4 * (square + of_norms) + 2 * all / ranks)).epsilon(0.001));
  CHECK(added(3, 4, 1e9).backward == Seconds(0));
}

// Stage 2 with room for the square matrices: they are copied as they are made, all are divided, and
// a quarter is copied out, and added by three of four microbatches (two reads and a write).
TEST_CASE("ZeRO-2 copies gradients into its bucket and adds its part", "[cost]") {
  const double all = square + oblong + of_norms;
  const BlockTime two = added(2, 4, 1.2e6);
  CHECK(two.backward.value == Approx(moving(2 * (square + of_norms))).epsilon(0.001));
  CHECK(two.reduce.value == Approx(moving(2 * all + (2 + 3 * 0.75) * all / ranks)).epsilon(0.001));
}

// Eight experts of three square matrices each, that a loop calls one by one, are 24 gradients for
// which such a bucket has room, beside the router's 8 x 1,024.
TEST_CASE("experts of a loop have gradients of their own in a bucket", "[cost]") {
  const double all = 4.0 * 1024 * 1024 + 24.0 * 1024 * 1024 + 8 * 1024 + of_norms;
  const MixtureOfExperts eight{8, 2, 1024, 0, false, 0, 1};
  CHECK(added(3, 1, 1.2e6, eight).reduce.value ==
        Approx(moving(6 * all + 2 * all / ranks)).epsilon(0.001));
}

}  // namespace shardwise
