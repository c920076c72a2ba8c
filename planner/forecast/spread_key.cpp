#include "planner/forecast/spread_key.hpp"

namespace shardwise {

SpreadKey spread_key(const Question& q) { return spread_key(q.workload, q.plan, q.cluster); }

SpreadKey spread_key(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster) {
  const Method method = workload.method;
  SpreadKey key;
  key.framework = workload.framework.family;
  key.extent = plan.gpus() == 1       ? Extent::one_gpu
               : cluster.nodes() == 1 ? Extent::one_node
                                      : Extent::several_nodes;
  key.tensor = plan.tensor > 1;
  key.stages = plan.pipeline > 1;
  key.tuning = method == Method::pretrain ? Tuning::pretrain
               : row(method).adapter      ? Tuning::adapters
                                          : Tuning::full;
  return key;
}

}  // namespace shardwise
