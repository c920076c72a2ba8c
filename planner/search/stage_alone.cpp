#include "planner/search/stage_alone.hpp"

#include <algorithm>
#include <utility>

#include "planner/search/two_lanes.hpp"

namespace shardwise {

StageEnd stage_alone(const std::vector<Slot>& slots, const StageCosts& stage,
                     const StepCosts& costs, int microbatches, Seconds input,
                     const std::vector<ArrivalCost>& arrivals, bool host_bound) {
  StageLanes lanes(stage, costs, microbatches, host_bound);
  for (const Slot& slot : slots) {
    lanes.run(slot, input, arrivals[static_cast<std::size_t>(slot.chunk)]);
    input = Seconds(0);
  }
  return lanes.end();
}

KnownSlots::List KnownSlots::of(const PipelineSchedule& schedule, PipelineShape shape, int stage) {
  const Key key{&schedule, shape.stages, shape.chunks_per_stage, shape.microbatches, stage};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  auto slots = schedule.order(shape, stage);
  List list;
  if (std::none_of(slots.begin(), slots.end(), [](const Slot& s) { return s.paired_with_next; }))
    list = std::make_shared<const std::vector<Slot>>(std::move(slots));
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(list)).first->second;
}

}  // namespace shardwise
