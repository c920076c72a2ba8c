// What Muon computes beside its momentum: Newton-Schulz iterations on the matrices of blocks.
#include "simulator/costs/newton_schulz.hpp"

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/parameter_state.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const KernelModel& kernels_of_a100() {
  static const Facts facts = *load_facts(source_dir() + "/catalog", std::nullopt);
  static const Cluster cluster = parse_gpus(facts.catalog, "1xA100-SXM-80GB")->front();
  static const KernelModel kernels(cluster.groups.front().gpu, facts.profile);
  return kernels;
}

Workload with_muon(Transformer model) {
  Workload w = pretraining(std::move(model), 256);
  w.step_with(*optimizer_named("muon"));
  return w;
}

Seconds muon_block(const Workload& w, const ParallelPlan& plan, Seconds per_launch = Seconds(0)) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  Seconds time;
  for (const LayerDefinition& d : partition.definitions)
    if (d.role == LayerRole::block)
      time += orthogonalization_time(w, plan, d, kernels_of_a100(), per_launch);
  return time;
}

}  // namespace

// 8192 x 4096 as 4096 x 8192: 5 (4 m m n + 2 m m m) = 5 x 6.87e11 FLOP. An A100 does 312e12 in a
// second at the best, and most of that in products of this size.
TEST_CASE("a matrix is orthogonalised along its shorter side", "[newton_schulz]") {
  const double m = 4096, n = 8192, flops = 5 * (4 * m * m * n + 2 * m * m * m);
  const Seconds time = newton_schulz_time(4096, 8192, kernels_of_a100());
  CHECK(newton_schulz_time(8192, 4096, kernels_of_a100()) == time);
  CHECK(flops / time.value < 312e12);
  CHECK(flops / time.value > 0.6 * 312e12);
}

// 64 of 1024 x 384 in one batched product each time: as much to compute, and of 64 x 5
// iterations, of three products and two sums each, 63 x 5 are started no more: 945 and 630 kernels.
TEST_CASE("a stack of matrices is orthogonalised at once", "[newton_schulz]") {
  const double m = 384, n = 1024, flops = 64 * 5 * (4 * m * m * n + 2 * m * m * m);
  const Seconds one = newton_schulz_time(384, 1024, kernels_of_a100());
  const Seconds stack = newton_schulz_time(384, 1024, kernels_of_a100(), 64);
  GemmWork two{384, 384, 1024, 2};
  const Seconds together = kernels_of_a100().gemm(two);
  two.grouped = true;  // the second starts as well
  const Seconds product = kernels_of_a100().gemm(two) - together;
  const Seconds sum = kernels_of_a100().memory_bound(Bytes(0));
  CHECK(64 * one.value - stack.value >= 945 * product.value + 630 * sum.value);
  CHECK(flops / stack.value < 312e12);
}

// Written by operators, b A + c A A is three kernels and a X + B X two: three more in each of five
// iterations. Of 8 x 8 their bytes are nothing beside their starts.
TEST_CASE("sums by operators start a kernel for each", "[newton_schulz]") {
  const KernelModel& k = kernels_of_a100();
  const Seconds fused = newton_schulz_time(8, 8, k);
  const Seconds written = newton_schulz_time(8, 8, k, 1, NewtonSchulzSums::by_operators);
  CHECK(written.value - fused.value == Approx(15 * k.memory_bound(Bytes(0)).value).epsilon(0.01));
}

// Where a launch takes the CPU a second, nothing else counts. A matrix is 5 x 8 + 9 = 49 launches
// by operators and 5 x 5 + 4 = 29 compiled; of q, k, v, o, gate, up and down there are seven.
TEST_CASE("the CPU launches one matrix after another", "[newton_schulz]") {
  Workload w = with_muon(llama(1, 1024, 8, 4, 2816, 1000));
  w.framework.layers.kernels = KernelStyle::eager;
  CHECK(muon_block(w, plan_of(1), Seconds(1)).value == Approx(7 * 49));
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(muon_block(w, plan_of(1), Seconds(1)).value == Approx(7 * 29));
  CHECK(muon_block(w, plan_of(1), Seconds(1e-12)) == muon_block(w, plan_of(1)));
}

// A block of 1,024: q and o of 1024 x 1024, k and v of 512 x 1024 (one product where they are
// fused), gate, up and down of 2816 x 1024. AdamW has none of it, nor have the tables.
TEST_CASE("every rank has its part of the matrices", "[newton_schulz]") {
  Workload w = with_muon(llama(1, 1024, 8, 4, 2816, 1000));
  ParallelPlan plan = plan_of(4);
  const Seconds whole = muon_block(w, plan);
  CHECK(whole > Seconds(0));
  plan.zero_stage = 1;
  CHECK(muon_block(w, plan).value == Approx(whole.value / 4));
  plan.zero_stage = 0;
  w.shares_orthogonalization = true;
  CHECK(muon_block(w, plan).value == Approx(whole.value / 4));
  w.step_with(*optimizer_named("adamw"));
  CHECK(muon_block(w, plan) == Seconds(0));
}

// Eight experts on eight ranks. All of them on each: each steps an eighth of eight. Two on each,
// which two ranks have: a half of two. One on each, which no other rank has: that one, whole.
TEST_CASE("a rank's only expert is shared out to no other rank", "[newton_schulz]") {
  Workload w = with_muon(llama(1, 1024, 8, 4, 2816, 1000));
  w.model.moe = MixtureOfExperts{8, 2, 1024, 0, false, 0, 1};
  ParallelPlan plan = plan_of(8);
  plan.zero_stage = 1;
  const Seconds together = muon_block(w, plan);
  for (const int expert : {4, 8}) {
    plan.expert = expert;
    CHECK(muon_block(w, plan).value == Approx(together.value));
  }
}

// Of 1 Mi elements in fp32: a momentum for matrices, AdamW's two for tables and norms.
TEST_CASE("tables and norms keep AdamW's states", "[newton_schulz]") {
  Workload w = with_muon(llama(1, 64, 2, 2, 128, 100));
  w.method = Method::full;
  w.framework.formats.finetune_weights = WeightRecipe::fp32;
  LayerParameters matrices, tables;
  matrices.linear = tables.other = 1 << 20;
  CHECK(layer_state(w, plan_of(1), matrices, true).optimizer == 4 << 20);
  CHECK(layer_state(w, plan_of(1), tables, true).optimizer == 8 << 20);
}

}  // namespace shardwise
