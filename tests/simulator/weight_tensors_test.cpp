// What Megatron Core's Python takes for each weight: its hook with every backward pass, its step,
// and the cast of one that is kept in MXFP8.
#include "simulator/graphs/weight_tensors.hpp"

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// One layer, 64 experts of which every token takes eight, of two projections each.
Workload grouped_mixture(DType compute) {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  w.framework.layers.kernels = KernelStyle::fused;
  w.framework.narrow.weights = NarrowWeights::stored;
  w.framework.gradients.life = GradientLife::persistent;
  w.compute = compute;
  return w;
}

struct GroupedRun {
  Workload w;
  ParallelPlan plan = plan_of(16);
  Cluster cluster = parse_gpus(known_facts().catalog, "16xB200")->front();

  explicit GroupedRun(DType compute) : w(grouped_mixture(compute)) { plan.expert = 8; }
  ModelPartition partition() const {
    return partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  }
  WeightTensors weights() const {
    WeightTensors sum;
    for (const LayerDefinition& d : partition().definitions) sum = sum + weight_tensors(d.graph);
    return sum;
  }
  double per_step() const {
    const CostModel cost(w, plan, cluster, known_facts().profile);
    return cost.costs(partition()).stages.front().host_per_step.value;
  }
};

}  // namespace

// Table, head and last norm; a block's q, k and v in one, o, two norms and the router: 3 + 5. Of
// the experts that a rank has, 64 / 8, two matrices each: 16. Norms, router, table and head are
// 16 bits in MXFP8: q, k and v, o and the experts' are not.
TEST_CASE("weights that read one input are one, experts each have their own", "[weight_tensors]") {
  const WeightTensors wide = GroupedRun(DType::bf16).weights();
  CHECK(wide.dense == 8);
  CHECK(wide.expert == 16);
  CHECK(wide.narrow == 0);
  CHECK(GroupedRun(DType::mxfp8).weights().narrow == 18);
}

// 21 weights in the block, whatever the stage and the number of microbatches.
TEST_CASE("Megatron Core calls a hook for each weight in each backward pass", "[weight_tensors]") {
  GroupedRun m(DType::bf16);
  m.w.framework.host.us_per_gradient = 3;
  const CostModel cost(m.w, m.plan, m.cluster, known_facts().profile);
  const KernelModel kernels(m.cluster.groups.front().gpu, known_facts().profile, {});
  const ModelPartition partition = m.partition();
  for (const LayerDefinition& d : partition.definitions)
    if (d.role == LayerRole::block)
      CHECK(cost.gradient_hooks(d, kernels).value == Approx(21 * 3e-6 * kernels.host_slowdown()));
}

// At stage 1 a rank has parts of one of the eight dense tensors, as sixteen share them, and, as two
// ranks have the same experts, of 16 / 2 of theirs; without it all 24 are its own.
TEST_CASE("Megatron Core steps tensor by tensor what a rank has a range of", "[weight_tensors]") {
  const auto more = [](int stage) {
    GroupedRun m(DType::bf16);
    m.plan.zero_stage = stage;
    m.w.framework.host.us_per_gradient = 3;
    const double before = m.per_step();
    m.w.framework.host.us_per_stepped_tensor = 10;
    return m.per_step() - before;
  };
  CHECK(more(1) == Approx(9 * 10e-6));
  CHECK(more(0) == Approx(24 * 10e-6));
}

// 18 weights of 8 bits, each by the time of so many operators; none where 16 bits are kept beside
// them.
TEST_CASE("weights kept in MXFP8 are cast one by one after a step", "[weight_tensors]") {
  GroupedRun m(DType::mxfp8);
  const double stored = m.per_step();
  m.w.framework.narrow.weights = NarrowWeights::beside;
  const HostCalibration& host = known_facts().profile.host;
  CHECK(host.mxfp8_weight_cast > 1);
  CHECK(stored - m.per_step() ==
        Approx(18 * host.mxfp8_weight_cast * host.per_kernel.front().value));
}

}  // namespace shardwise
