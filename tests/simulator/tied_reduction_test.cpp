// What stages add up that have the same table.
#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

StepCosts costs_of(const Workload& w, const ParallelPlan& plan) {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  return CostModel(w, plan, cluster, known_facts().profile).costs(partition);
}

ParallelPlan staged(int stages) {
  ParallelPlan plan = plan_of(4 / stages, 2);
  plan.pipeline = stages;
  plan.microbatches = 8;
  return plan;
}

Workload tied() {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 32000), 128);
  w.model.tied_embeddings = true;
  w.framework.gradients.reduce_dtype = DType::fp32;
  return w;
}

}  // namespace

// Half of a table of 32,000 x 512 on each tensor rank, in fp32, between the two ranks that have the
// same half: stage 0's and the last one's, whatever lies between.
TEST_CASE("the first and the last stage reduce the gradients of a tied table", "[cost]") {
  for (const int stages : {2, 4}) {
    const StepCosts costs = costs_of(tied(), staged(stages));
    REQUIRE(costs.tied.size() == 1);
    CHECK(costs.tied.front().first == 0);
    CHECK(costs.tied.front().last == stages - 1);
    for (int s = 0; s < stages; ++s) {
      int found = 0;
      for (const CollectiveUse& u : costs.stages[static_cast<std::size_t>(s)].collectives) {
        if (u.work != WorkKind::reduce_gradients || u.group != GroupKind::pipeline) continue;
        ++found;
        CHECK(u.collective == Collective::all_reduce);
        CHECK(u.shape.ranks == 2);
        CHECK(u.size == Bytes(4 * 512 * 32000 / 2));
        CHECK(u.each.time == costs.tied.front().time);
      }
      CHECK(found == (costs.tied.front().between(s) ? 1 : 0));
    }
  }
}

TEST_CASE("nothing is reduced between stages that have nothing tied", "[cost]") {
  Workload w = tied();
  CHECK(costs_of(w, staged(1)).tied.empty());
  w.framework.loading.unties_embeddings = true;
  CHECK(costs_of(w, staged(2)).tied.empty());
  w = tied();
  w.model.tied_embeddings = false;
  CHECK(costs_of(w, staged(2)).tied.empty());
  w = tied();
  w.method = Method::lora;  // neither has gradients
  CHECK(costs_of(w, staged(2)).tied.empty());
}

// Four stages with a block of each half: stages 1 and 2 both have blocks 1 and 2, of 2 x 512 x 512,
// 2 x 256 x 512 and 3 x 1,408 x 512 values and two norms, whose gradients they add up in fp32; of
// two data ranks that step half of them each, each its half.
TEST_CASE("DualPipe's two copies of a chunk add up their gradients", "[cost]") {
  Workload w = tied();
  w.model.tied_embeddings = false;
  ParallelPlan plan = plan_of(1);
  plan.pipeline = 4;
  plan.microbatches = 8;
  plan.schedule = "dualpipe";
  plan.chunks = 2;
  const std::int64_t blocks =
      2 * (2 * 512 * 512 + 2 * 256 * 512 + std::int64_t{3} * 1408 * 512 + 2 * 512);
  for (const int data : {1, 2}) {
    plan.data = data;
    plan.zero_stage = data - 1;
    const Cluster cluster =
        parse_gpus(known_facts().catalog, data == 1 ? "4xA100-SXM-80GB" : "8xA100-SXM-80GB")
            ->front();
    const ModelPartition partition =
        partition_model(w, plan, *find_pipeline_schedule("dualpipe"), *recompute_policy("none"));
    const StepCosts costs = CostModel(w, plan, cluster, known_facts().profile).costs(partition);
    REQUIRE(costs.tied.size() == 2);
    CHECK(costs.tied[1].first == 1);
    CHECK(costs.tied[1].last == 2);
    Bytes sent;
    for (const CollectiveUse& u : costs.stages[1].collectives)
      if (u.work == WorkKind::reduce_gradients && u.group == GroupKind::pipeline) sent += u.size;
    CHECK(sent == Bytes(4 * blocks / data));
  }
}

}  // namespace shardwise
