#include "simulator/stage_programs.hpp"

#include <algorithm>
#include <utility>

namespace shardwise {
namespace {

// Whether the same slots of both stages take the same, and so does what ends their step.
bool cost_the_same(const StageCosts& a, const StageCosts& b) {
  return a.load == b.load && a.optimizer == b.optimizer && a.host_optimizer == b.host_optimizer &&
         a.nvme_each_way == b.nvme_each_way && a.reduce_at_end == b.reduce_at_end &&
         a.gather_at_end == b.gather_at_end && a.copy_in_at_end == b.copy_in_at_end &&
         a.host_per_step == b.host_per_step && a.chunks == b.chunks;
}

}  // namespace

StagePrograms::StagePrograms(const ParallelPlan& plan, const PipelineSchedule& schedule,
                             const StepCosts& costs)
    : plan_(plan),
      schedule_(schedule),
      costs_(costs),
      shape_{plan.pipeline, plan.chunks, plan.microbatches},
      lowering_(plan, schedule, costs, recorder_),
      passes_each_way_(static_cast<std::size_t>(lowering_.model_chunks()) *
                       static_cast<std::size_t>(plan.microbatches)) {}

StagePrograms::Kind StagePrograms::describe(int stage) const {
  Kind kind;
  kind.example = stage;
  for (int k = 0; k < plan_.chunks; ++k) {
    const int c = schedule_.model_chunk(shape_, stage, k);
    kind.chunks.push_back({c == 0, lowering_.arrives_from_elsewhere(stage, c - 1),
                           lowering_.arrives_from_elsewhere(stage, c + 1)});
  }
  const int before = (stage + plan_.pipeline - 1) % plan_.pipeline;
  kind.sends = {costs_.send[static_cast<std::size_t>(before)],
                costs_.send[static_cast<std::size_t>(stage)]};
  const auto passes = static_cast<std::size_t>(Pass::backward_weight) + 1;
  kind.programs.resize(passes * static_cast<std::size_t>(plan_.chunks) * 8);
  return kind;
}

StagePrograms::Kind& StagePrograms::kind_of(int stage) {
  Kind kind = describe(stage);
  for (Kind& known : kinds_)
    if (known.chunks == kind.chunks && known.sends == kind.sends &&
        cost_the_same(costs_.stages[static_cast<std::size_t>(known.example)],
                      costs_.stages[static_cast<std::size_t>(stage)]))
      return known;
  kinds_.push_back(std::move(kind));
  return kinds_.back();
}

const SlotProgram& StagePrograms::program(Kind& kind, const Slot& slot, bool behind_collective) {
  std::size_t at = static_cast<std::size_t>(slot.pass) * static_cast<std::size_t>(plan_.chunks) +
                   static_cast<std::size_t>(slot.chunk);
  at = 2 * at + static_cast<std::size_t>(slot.microbatch == 0);
  at = 2 * at + static_cast<std::size_t>(slot.microbatch == plan_.microbatches - 1);
  at = 2 * at + static_cast<std::size_t>(behind_collective);
  const SlotProgram*& known = kind.programs[at];
  if (known != nullptr) return *known;
  SlotProgram made = record_slot(lowering_, recorder_, kind.example, slot, behind_collective);
  const auto same = std::find(kind.distinct.begin(), kind.distinct.end(), made);
  known = same != kind.distinct.end() ? &*same : &kind.distinct.emplace_back(std::move(made));
  return *known;
}

std::int32_t StagePrograms::pass(Pass pass, int model_chunk, int microbatch) const {
  const std::size_t way = pass == Pass::forward ? 0 : passes_each_way_;
  return static_cast<std::int32_t>(
      way + static_cast<std::size_t>(model_chunk) * static_cast<std::size_t>(plan_.microbatches) +
      static_cast<std::size_t>(microbatch));
}

std::vector<BoundSlot> StagePrograms::bind(int stage) {
  Kind& kind = kind_of(stage);
  std::vector<BoundSlot> bound;
  std::array<std::uint32_t, register_count> registers{};
  std::uint32_t next_task = 1;
  const auto add = [&](const SlotProgram& program, std::int32_t input, std::int32_t output) {
    const BoundSlot& slot =
        bound.emplace_back(BoundSlot{&program, next_task, registers, input, output});
    next_task += static_cast<std::uint32_t>(program.steps.size());
    for (std::size_t r = 0; r < register_count; ++r) registers[r] = slot.task(program.registers[r]);
  };
  bool behind_collective = false;
  const std::vector<Slot> order = schedule_.order(shape_, stage);
  bound.reserve(order.size() + 2);
  for (const Slot& slot : order) {
    const SlotProgram& played = program(kind, slot, behind_collective);
    behind_collective = played.behind_collective;
    if (slot.pass == Pass::backward_weight) {
      add(played, BoundSlot::none, BoundSlot::none);
      continue;
    }
    const int c = schedule_.model_chunk(shape_, stage, slot.chunk);
    const bool forward = slot.pass == Pass::forward;
    const auto& arrives = kind.chunks[static_cast<std::size_t>(slot.chunk)];
    const bool waits = forward ? arrives[1] : arrives[2];
    add(played, waits ? pass(slot.pass, forward ? c - 1 : c + 1, slot.microbatch) : BoundSlot::none,
        pass(slot.pass, c, slot.microbatch));
  }
  if (!kind.finish)
    kind.finish = record_finish(lowering_, recorder_, kind.example, costs_.waits_for_all_stages);
  add((*kind.finish)[0], BoundSlot::none, BoundSlot::all_stages);
  add((*kind.finish)[1], BoundSlot::all_stages, BoundSlot::none);
  return bound;
}

}  // namespace shardwise
