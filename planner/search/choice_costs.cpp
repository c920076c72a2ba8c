#include "planner/search/choice_costs.hpp"

#include "planner/choice/workload_choice.hpp"

namespace shardwise {
namespace {

// Splits the model and shards nothing.
ParallelPlan split_alone() {
  ParallelPlan plan;
  plan.pipeline = 2;
  return plan;
}

}  // namespace

ChoiceCosts::ChoiceCosts(const ResolvedRequest& request, Method method, const Cluster& cluster)
    : cluster_(cluster),
      profile_(request.facts->profile),
      without_zero_(choose_workload(request, method, cluster, 0).workload),
      with_zero_(choose_workload(request, method, cluster, 1).workload),
      unlowered_(choose_workload(request, method, cluster, split_alone()).workload),
      collectives_(cluster, profile_.links),
      collectives_known_{&collectives_, nullptr, nullptr} {
  collectives_.remember();
}

bool ChoiceCosts::is_unlowered(const ParallelPlan& plan) const {
  return left_unlowered(without_zero_.framework, without_zero_.compute, plan).has_value();
}

BoundSite ChoiceCosts::site(const ParallelPlan& plan) const {
  return {workload(plan), cluster_, profile_, collectives_};
}

// The plan is laid over the cluster without stages. Where its layers would be others then, they are
// bounded by those of a step with one microbatch, as in a search.
std::shared_ptr<const LayerBounds> ChoiceCosts::layers_of(const ParallelPlan& plan) {
  ParallelPlan whole = plan;
  whole.data *= plan.pipeline;
  whole.pipeline = whole.chunks = 1;
  whole.layer_split = false;
  whole.layers_per_stage.clear();
  whole.schedule = ParallelPlan{}.schedule;
  const Workload& w = workload(plan);
  if (seen_sharding(w, whole) != seen_sharding(w, plan)) whole.microbatches = 1;
  return layers_.of(is_unlowered(plan) ? 1 : 0, site(plan), whole);
}

KnownCosts ChoiceCosts::known(const ParallelPlan& plan) {
  const auto layers = layers_of(plan);
  const Workload& w = workload(plan);
  return {&collectives_, layers->definitions(w, plan),
          layers->times(w, plan, cluster_, profile_, collectives_)};
}

Seconds ChoiceCosts::step_bound(const ParallelPlan& plan) {
  const auto layers = layers_of(plan);
  return pipeline_bound(*layers, plan, data_traffic(site(plan), *layers, plan));
}

}  // namespace shardwise
