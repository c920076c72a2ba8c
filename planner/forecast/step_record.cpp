#include "planner/forecast/step_record.hpp"

#include <utility>

#include "planner/forecast/forecast_parts.hpp"

namespace shardwise {

std::shared_ptr<const StepRecord> record_step(const ForecastContext& k, const StepCosts& costs,
                                              PlayedStep step) {
  const Question& q = k.question;
  auto record = std::make_shared<StepRecord>(StepRecord{std::move(step), {}, {}, {}});
  for (int stage = 0; stage < q.plan.pipeline; ++stage) {
    const NodeGroup& group = smallest_group(q.cluster, q.plan, stage);
    const ContextCalibration& context = k.profile.row(group.gpu.family).context;
    record->memory.push_back(memory_timeline(
        record->step, stage,
        record_memory(q.workload, q.plan, k.schedule, k.partition, stage, context)));
  }
  record->links = link_occupancy(record->step, k.cost.layout(), k.cost.collectives().topology());
  for (const StageCosts& stage : costs.stages) record->collectives.push_back(stage.collectives);
  return record;
}

}  // namespace shardwise
