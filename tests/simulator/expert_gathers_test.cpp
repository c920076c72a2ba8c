// Over which ranks weights are put together where experts are spread.
#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

// A block has q and o of 1,024 x 1,024, k and v of 512 x 1,024, a router of 8 x 1,024 and two
// norms: 3,155,968 parameters beside eight experts of 3 x 1,024 x 512 = 1,572,864.
constexpr std::int64_t dense = 3'155'968, expert = 1'572'864;

Workload eight_experts() {
  Workload w = pretraining(llama(1, 1024, 8, 4, 2816, 1000), 256);
  w.model.moe = MixtureOfExperts{8, 2, 512, 0, false, 0, 1};
  return w;
}

ParallelPlan with_experts_over(int experts, int zero_stage) {
  ParallelPlan plan = plan_of(16);
  plan.expert = experts;
  plan.zero_stage = zero_stage;
  return plan;
}

std::vector<CollectiveUse> collectives_of(const Workload& w, const ParallelPlan& plan) {
  const Cluster cluster = parse_gpus(known_facts().catalog, "16xA100-SXM-80GB")->front();
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  const CostModel model(w, plan, cluster, known_facts().profile);
  return model.costs(partition).stages.front().collectives;
}

// How many ranks gather so many bytes at once; 0 where none do.
int ranks_that_gather(const Workload& w, const ParallelPlan& plan, std::int64_t bytes) {
  for (const CollectiveUse& u : collectives_of(w, plan))
    if (u.work == WorkKind::gather_parameters && u.size == Bytes(bytes)) return u.shape.ranks;
  return 0;
}

}  // namespace

// Sixteen ranks, experts over eight of them: an expert is on two. Over sixteen it is on one, which
// has it whole.
TEST_CASE("spread experts are gathered over the ranks that have the same ones", "[cost]") {
  for (const int stage : {1, 2, 3}) {
    CHECK(ranks_that_gather(eight_experts(), with_experts_over(1, stage),
                            2 * (dense + 8 * expert)) == 16);
    CHECK(ranks_that_gather(eight_experts(), with_experts_over(8, stage), 2 * dense) == 16);
    CHECK(ranks_that_gather(eight_experts(), with_experts_over(8, stage), 2 * expert) == 2);
    CHECK(ranks_that_gather(eight_experts(), with_experts_over(2, stage), 2 * 4 * expert) == 8);
  }
  Workload sixteen = eight_experts();
  sixteen.model.moe->experts = 16;  // a router of 16 x 1,024
  CHECK(ranks_that_gather(sixteen, with_experts_over(16, 1), 2 * (dense + 8 * 1024)) == 16);
  CHECK(ranks_that_gather(sixteen, with_experts_over(16, 1), 2 * expert) == 0);
}

// Two shard groups of eight ranks with experts over four: in each group two have the same ones.
TEST_CASE("spread experts are sharded inside a shard group", "[cost]") {
  ParallelPlan plan = with_experts_over(4, 3);
  plan.shard_group = 8;
  CHECK(ranks_that_gather(eight_experts(), plan, 2 * dense) == 8);
  CHECK(ranks_that_gather(eight_experts(), plan, 2 * 2 * expert) == 2);
  LayerParameters experts;
  experts.expert = 1 << 20;
  CHECK(layer_state(eight_experts(), plan, experts, true).weights == 1 << 20);  // half of 2 B each
}

// The same plan's gradients, of fp32: both ranks of a group that have the same two experts scatter
// the sums, and each adds its half to that of the other group's rank. Experts over all sixteen
// ranks are on one rank each, which has nobody to reduce with.
TEST_CASE("replicas add up the shards of an expert's gradients", "[cost]") {
  ParallelPlan plan = with_experts_over(4, 3);
  plan.shard_group = 8;
  Workload w = eight_experts();
  w.framework.gradients.reduce_dtype = DType::fp32;
  const auto ranks_that = [&](Collective collective, std::int64_t bytes) {
    for (const CollectiveUse& u : collectives_of(w, plan))
      if (u.work == WorkKind::reduce_gradients && u.collective == collective &&
          u.size == Bytes(bytes))
        return u.shape.ranks;
    return 0;
  };
  CHECK(ranks_that(Collective::reduce_scatter, 4 * dense) == 8);
  CHECK(ranks_that(Collective::all_reduce, 4 * dense / 8) == 2);
  CHECK(ranks_that(Collective::reduce_scatter, 4 * 2 * expert) == 2);
  CHECK(ranks_that(Collective::all_reduce, 4 * expert) == 2);
  w.model.moe->experts = 16;
  plan.expert = 16;
  for (const CollectiveUse& u : collectives_of(w, plan)) CHECK(u.group != GroupKind::expert_shard);
}

// What was stepped is sent as it is stored: in fp32 where all is.
TEST_CASE("stepped weights are gathered as they are stored", "[cost]") {
  Workload w = eight_experts();
  w.compute = DType::fp32;
  CHECK(ranks_that_gather(w, with_experts_over(8, 1), 4 * dense) == 16);
  CHECK(ranks_that_gather(w, with_experts_over(8, 1), 4 * expert) == 2);
}

}  // namespace shardwise
