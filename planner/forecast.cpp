#include "planner/forecast.hpp"

#include "planner/forecast_parts.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {

Result<Forecast> forecast(const Question& q, const Profile& profile,
                          const ForecastOptions& options) {
  const Problems problems = plan_problems(q.workload, q.plan, q.cluster);
  if (!problems.empty()) return problems;
  const PipelineSchedule& schedule = *find_pipeline_schedule(q.plan.schedule_row());
  const RecomputePolicy policy = *recompute_policy(q.plan.recompute);
  const ForecastContext context{q,
                                profile,
                                schedule,
                                policy,
                                partition_model(q.workload, q.plan, schedule, policy),
                                CostModel(q.workload, q.plan, q.cluster, profile, policy)};
  Forecast f;
  forecast_memory(context, options, f);
  if (options.time) forecast_time(context, options, f);
  if (q.plan.offload.activations)
    f.notes.push_back("the time to copy offloaded activations is not modelled, only the memory");
  return f;
}

}  // namespace shardwise
