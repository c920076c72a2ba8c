// What one block of a model takes, pass by pass, as the cost model has it.
#pragma once

#include <stdexcept>

#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

inline LayerTime block_time(const Workload& w, const ParallelPlan& plan, const Cluster& cluster,
                            const Profile& profile = known_facts().profile) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition =
      partition_model(w, plan, schedule, *recompute_policy(plan.recompute));
  const CostModel model(w, plan, cluster, profile);
  const KernelModel kernels(cluster.groups.front().gpu, profile);
  for (const LayerDefinition& d : partition.definitions)
    if (d.role == LayerRole::block) return model.layer_time(d, kernels);
  throw std::logic_error("no block");
}

}  // namespace shardwise
