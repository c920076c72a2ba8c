#include "planner/search/last_reductions.hpp"

namespace shardwise {
namespace {

std::vector<ReductionSlot> reduction_slots(const PipelineSchedule& schedule, PipelineShape shape,
                                           int stage) {
  std::vector<ReductionSlot> found;
  std::vector<PassesRun> run(static_cast<std::size_t>(shape.chunks_per_stage));
  for (const Slot& slot : schedule.order(shape, stage)) {
    const bool last = slot.microbatch == shape.microbatches - 1;
    if (last && (slot.pass == Pass::backward || slot.pass == Pass::backward_weight))
      found.push_back({slot.chunk, run});
    PassesRun& of_chunk = run[static_cast<std::size_t>(slot.chunk)];
    const bool both = slot.pass == Pass::backward;
    if (slot.pass == Pass::forward) ++of_chunk.forward;
    if (both || slot.pass == Pass::backward_input) ++of_chunk.input;
    if (both || slot.pass == Pass::backward_weight) ++of_chunk.weight;
  }
  return found;
}

}  // namespace

std::shared_ptr<const ReductionSlots> LastReductions::of(const ParallelPlan& p) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const Key key{&schedule, p.pipeline, p.chunks, p.microbatches};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  auto all = std::make_shared<ReductionSlots>();
  for (int stage = 0; stage < p.pipeline; ++stage)
    all->push_back(reduction_slots(schedule, {p.pipeline, p.chunks, p.microbatches}, stage));
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(all)).first->second;
}

}  // namespace shardwise
