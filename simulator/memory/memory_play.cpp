#include "simulator/memory/memory_play.hpp"

#include <algorithm>

#include "simulator/memory/stage_player.hpp"

namespace shardwise {

AllocatorSettings allocator_settings(const Framework& framework) {
  AllocatorSettings settings;
  settings.expandable_segments = framework.process.expandable_segments;
  if (framework.process.roundup_power2_divisions > 1)
    settings.roundup_power2_divisions =
        uniform_divisions(static_cast<std::uint32_t>(framework.process.roundup_power2_divisions));
  return settings;
}

std::vector<Slot> slots_played(const ParallelPlan& plan, const PipelineSchedule& schedule,
                               int stage) {
  const PipelineShape whole{plan.pipeline, plan.chunks, plan.microbatches};
  std::vector<Slot> all = schedule.order(whole, stage);
  const int most = peak_in_flight(all);
  for (const int enough :
       {2, std::min(most + 1, plan.pipeline), plan.pipeline, 2 * plan.pipeline}) {
    PipelineShape shorter = whole;
    shorter.microbatches = enough;
    if (enough < 2 || enough >= plan.microbatches || refusal(schedule, shorter)) continue;
    std::vector<Slot> some = schedule.order(shorter, stage);
    if (peak_in_flight(some) == most) return some;
  }
  return all;
}

namespace {

// Rounds of the pipeline, each as many microbatches as it has stages, where the CPU runs ahead and
// blocks that it has freed wait for the GPU. By then the peak moves no more: nanotron's runs are
// 5.93 % off at the median with the fewest microbatches that fill it, 5.84 with two rounds, 5.82
// with four and 5.84 with all that a step has.
constexpr int rounds_led = 4;

// Microbatches in flight at most once the first of them has gone back.
int peak_after_backward(const std::vector<Slot>& slots) {
  const auto back = std::find_if(slots.begin(), slots.end(),
                                 [](const Slot& s) { return s.pass != Pass::forward; });
  int in_flight = static_cast<int>(back - slots.begin());
  int peak = 0;
  for (auto slot = back; slot != slots.end(); ++slot) {
    if (slot->pass == Pass::forward) peak = std::max(peak, ++in_flight);
    if (slot->pass == Pass::backward || slot->pass == Pass::backward_weight) --in_flight;
  }
  return peak;
}

}  // namespace

std::vector<Slot> slots_of_step(const Workload& workload, const ParallelPlan& plan,
                                const PipelineSchedule& schedule, int stage) {
  std::vector<Slot> slots = slots_played(plan, schedule, stage);
  const Framework& f = workload.framework;
  // Blocks that wait for the GPU still do when later microbatches ask for theirs.
  if (f.process.records_streams && plan.pipeline > 1) {
    const PipelineShape more{plan.pipeline, plan.chunks,
                             std::min(plan.microbatches, rounds_led * plan.pipeline)};
    if (!refusal(schedule, more)) {
      std::vector<Slot> led = schedule.order(more, stage);
      if (led.size() > slots.size()) return led;
    }
  }
  // What a step's first backward pass leaves behind stands beside all that later ones find.
  const bool grows =
      f.gradients.life == GradientLife::per_step ||
      (f.gradients.copy_while_accumulating && f.gradients.copy_life == GradientCopyLife::run);
  if (!grows || plan.pipeline == 1) return slots;
  const PipelineShape whole{plan.pipeline, plan.chunks, plan.microbatches};
  std::vector<Slot> all = schedule.order(whole, stage);
  const int most = peak_after_backward(all);
  if (peak_after_backward(slots) == most) return slots;
  for (const int enough : {plan.pipeline + 1, 2 * plan.pipeline, 3 * plan.pipeline}) {
    PipelineShape shorter = whole;
    shorter.microbatches = enough;
    if (enough >= plan.microbatches || refusal(schedule, shorter)) continue;
    std::vector<Slot> some = schedule.order(shorter, stage);
    if (peak_after_backward(some) == most) return some;
  }
  return all;
}

StageMemory play_memory(const Workload& workload, const ParallelPlan& plan,
                        const PipelineSchedule& schedule, const ModelPartition& partition,
                        int stage, const ContextCalibration& context, std::optional<Bytes> capacity,
                        const PlayVariation& variation) {
  const std::vector<Slot> order = slots_of_step(workload, plan, schedule, stage);
  const auto at = static_cast<std::size_t>(stage);
  StagePlayer player(workload, plan, partition.stages[at], context, capacity, variation);
  StageMemory memory;
  memory.state = player.state();
  memory.loaded = player.ledger().allocated();
  for (const ModelPartition* shorter : variation.shorter) {
    player.switch_to(shorter->stages[at]);
    player.play_step(order);
  }
  player.switch_to(partition.stages[at]);
  player.play_step(order);
  memory.first_step = player.ledger().peak();
  player.ledger().reset_peak();
  player.play_step(order);
  memory.steady = player.ledger().peak();
  // A full card has given cache back, so that the next step finds another one, and may run out.
  if (player.ledger().gave_back()) player.play_step(order);
  memory.reserved_at_step = player.reserved_at_step();
  memory.after_forward = player.ledger().remembered();
  memory.after_step = player.ledger().allocated();
  memory.ran_out = player.ledger().exhausted();
  memory.capacity = player.ledger().capacity();
  const Framework& f = workload.framework;
  memory.kept_all =
      !f.process.records_streams && !f.process.expandable_segments && player.ledger().kept_all();
  memory.given_up = player.given_up();
  memory.activations_on_host = player.most_on_host();
  return memory;
}

std::vector<MemoryMoment> record_memory(const Workload& workload, const ParallelPlan& plan,
                                        const PipelineSchedule& schedule,
                                        const ModelPartition& partition, int stage,
                                        const ContextCalibration& context) {
  const std::vector<Slot> order =
      schedule.order({plan.pipeline, plan.chunks, plan.microbatches}, stage);
  StagePlayer player(workload, plan, partition.stages[static_cast<std::size_t>(stage)], context,
                     std::nullopt);
  player.play_step(order);
  std::vector<MemoryMoment> moments;
  player.ledger().take_recent_peak();
  player.record_to(moments);
  player.play_step(order);
  return moments;
}

}  // namespace shardwise
