// What all ranks of a plan send in a step, whichever plan it is: sums over stages and collectives
// against closed forms, L layers of width h, T tokens of a microbatch, M microbatches.
#include <random>
#include <string>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

struct Drawn {
  int layers = 4;
  ParallelPlan plan;
};

Drawn draw(std::mt19937& any) {
  const auto one_of = [&](std::initializer_list<int> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(any() % list.size()));
  };
  Drawn d;
  d.layers = one_of({4, 8, 12});
  d.plan = plan_of(one_of({1, 2, 4}), one_of({2, 4}), one_of({1, 2, 4}));
  d.plan.sequence_parallel = one_of({0, 1}) == 1;
  d.plan.microbatch = one_of({1, 2, 3});
  d.plan.microbatches = d.plan.pipeline * one_of({1, 2, 5});
  d.plan.zero_stage = d.plan.data > 1 ? one_of({0, 1}) : 0;
  return d;
}

StepCosts costs_of_drawn(const Workload& w, const ParallelPlan& plan) {
  const Cluster cluster =
      parse_gpus(known_facts().catalog, std::to_string(plan.gpus()) + "xH100-SXM")->front();
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  return CostModel(w, plan, cluster, known_facts().profile).costs(partition);
}

// Of all stages; messages of less than `least` are left out.
double sent(const StepCosts& costs, WorkKind work, Collective collective, double least = 0) {
  double sum = 0;
  for (const StageCosts& stage : costs.stages)
    for (const CollectiveUse& u : stage.collectives)
      if (u.work == work && u.collective == collective &&
          static_cast<double>(u.size.value) >= least)
        sum += static_cast<double>(u.size.value) * u.per_step;
  return sum;
}

}  // namespace

// Without sequence parallelism a layer sums twice forward and twice backward, the embedding once
// forward and the head once backward: 4 L + 2 times T h in 16 bits, be they on one stage or on
// several. With it they scatter as often, and gather 2 L + 1 times forward, backward and once more
// for the weights' gradients. The sums of the loss, 4 B for each token, are smaller.
TEST_CASE("what tensor ranks send does not depend on stages and replicas", "[cost]") {
  std::mt19937 any(7);
  for (int times = 0; times < 60; ++times) {
    const Drawn d = draw(any);
    const Workload w = pretraining(llama(d.layers, 512, 8, 4, 1408, 32000), 256);
    const StepCosts costs = costs_of_drawn(w, d.plan);
    const double tokens = 256.0 * d.plan.microbatch, act = 2 * 512 * tokens;
    const double each = act * d.plan.microbatches, layers = d.layers;
    INFO(to_string(d.plan) << " of " << d.layers << " layers");
    const auto of = [&](Collective c) { return sent(costs, WorkKind::tensor_comm, c, act); };
    const bool sp = d.plan.sequence_parallel;
    CHECK(of(Collective::all_reduce) == (sp ? 0 : (4 * layers + 2) * each));
    CHECK(of(Collective::reduce_scatter) == (sp ? (4 * layers + 2) * each : 0));
    CHECK(of(Collective::all_gather) == (sp ? (6 * layers + 3) * each : 0));
  }
}

// A gradient has 2 B here. Matrices are cut over tensor ranks and stages; norms, two in a layer and
// one before the head, are whole on every tensor rank. Stage 1 scatters what stage 0 sums, and
// gathers as many weights.
TEST_CASE("what replicas reduce is the model once, however it is cut", "[cost]") {
  std::mt19937 any(11);
  for (int times = 0; times < 60; ++times) {
    const Drawn d = draw(any);
    Workload w = pretraining(llama(d.layers, 512, 8, 4, 1408, 32000), 256);
    w.framework.gradients.reduce_dtype = DType::bf16;
    const StepCosts costs = costs_of_drawn(w, d.plan);
    const double h = 512, matrices = d.layers * (3 * h * h + 3 * h * 1408) + 2 * 32000 * h;
    const double norms = (2 * d.layers + 1) * h;
    const double model = d.plan.data > 1 ? 2 * (matrices / d.plan.tensor + norms) : 0;
    INFO(to_string(d.plan) << " of " << d.layers << " layers");
    const bool cuts = d.plan.zero_stage == 1;
    const auto reduced = [&](Collective c) { return sent(costs, WorkKind::reduce_gradients, c); };
    CHECK(reduced(Collective::all_reduce) == Approx(cuts ? 0 : model));
    CHECK(reduced(Collective::reduce_scatter) == Approx(cuts ? model : 0));
    CHECK(sent(costs, WorkKind::gather_parameters, Collective::all_gather) ==
          Approx(cuts ? model : 0));
  }
}

}  // namespace shardwise
