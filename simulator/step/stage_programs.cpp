#include "simulator/step/stage_programs.hpp"

#include <algorithm>
#include <utility>

namespace shardwise {
namespace {

// Whether the same slots of both stages take the same, and so does what ends their step.
bool cost_the_same(const StageCosts& a, const StageCosts& b) {
  return a.load == b.load && a.optimizer == b.optimizer && a.host_optimizer == b.host_optimizer &&
         a.nvme_each_way == b.nvme_each_way && a.reduce_at_end == b.reduce_at_end &&
         a.copy_out_at_end == b.copy_out_at_end && a.gather_at_end == b.gather_at_end &&
         a.copy_in_at_end == b.copy_in_at_end && a.host_per_step == b.host_per_step &&
         a.chunks == b.chunks;
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
  if (const TiedReduction* tied = costs_.tied_at(stage)) kind.tied = tied->time;
  const auto passes = static_cast<std::size_t>(Pass::backward_weight) + 1;
  kind.programs.resize(passes * static_cast<std::size_t>(plan_.chunks) * 8);
  return kind;
}

StagePrograms::Kind& StagePrograms::kind_of(int stage) {
  Kind kind = describe(stage);
  for (Kind& known : kinds_)
    if (known.chunks == kind.chunks && known.sends == kind.sends && known.tied == kind.tied &&
        cost_the_same(costs_.stages[static_cast<std::size_t>(known.example)],
                      costs_.stages[static_cast<std::size_t>(stage)]))
      return known;
  kinds_.push_back(std::move(kind));
  return kinds_.back();
}

const SlotProgram& StagePrograms::program(Kind& kind, const Slot& slot, bool behind_collective) {
  const std::size_t pass =
      static_cast<std::size_t>(slot.pass) * static_cast<std::size_t>(plan_.chunks) +
      static_cast<std::size_t>(slot.chunk);
  const std::size_t of = 2 * pass + static_cast<std::size_t>(behind_collective);
  const Asked is{lowering_.is_first(slot), lowering_.is_last(slot)};
  const SlotProgram*& known = kind.programs[4 * of + 2 * static_cast<std::size_t>(is.first) +
                                            static_cast<std::size_t>(is.last)];
  if (known == nullptr) known = &recorded(kind, slot, behind_collective, of, is);
  return *known;
}

const SlotProgram& StagePrograms::recorded(Kind& kind, const Slot& slot, bool behind_collective,
                                           std::size_t of, Asked is) {
  for (const Recorded& r : kind.recorded)
    if (r.of == of && (!r.asked.first || r.is.first == is.first) &&
        (!r.asked.last || r.is.last == is.last))
      return *r.program;
  SlotProgram made = record_slot(lowering_, recorder_, kind.example, slot, behind_collective);
  const Asked asked = lowering_.asked();
  const auto same = std::find(kind.distinct.begin(), kind.distinct.end(), made);
  const SlotProgram& kept =
      same != kind.distinct.end() ? *same : kind.distinct.emplace_back(std::move(made));
  kind.recorded.push_back({of, is, asked, &kept});
  return kept;
}

std::vector<BoundSlot> StagePrograms::bind(int stage) {
  Kind& kind = kind_of(stage);
  std::vector<BoundSlot> bound;
  BoundSlot next;
  next.first = 1;
  const auto add = [&](const SlotProgram& program, std::int32_t input, std::int32_t output) {
    next.program = &program;
    next.input = input;
    next.output = output;
    bound.push_back(next);
    const BoundSlot& slot = bound.back();
    for (std::size_t r = 0; r < register_count; ++r)
      next.registers[r] = slot.task(program.registers[r]);
    next.first += static_cast<std::uint32_t>(program.steps.size());
  };
  // The first pass through the model chunk of each local one, forward; backward ones follow all of
  // these. The chunks before and after it are as many passes away as there are microbatches.
  std::vector<std::int32_t> passes;
  const std::int32_t microbatches = plan_.microbatches;
  for (int k = 0; k < plan_.chunks; ++k)
    passes.push_back(schedule_.model_chunk(shape_, stage, k) * microbatches);
  const auto back = static_cast<std::int32_t>(passes_each_way_);
  bool behind_collective = false;
  const std::vector<Slot> order = schedule_.order(shape_, stage);
  bound.reserve(order.size() + 3);
  for (const Slot& slot : order) {
    const SlotProgram& played = program(kind, slot, behind_collective);
    behind_collective = played.behind_collective;
    std::int32_t input = BoundSlot::none, output = BoundSlot::none;
    if (slot.pass != Pass::backward_weight) {
      const auto local = static_cast<std::size_t>(slot.chunk);
      const auto& arrives = kind.chunks[local];
      const bool forward = slot.pass == Pass::forward;
      output = passes[local] + slot.microbatch + (forward ? 0 : back);
      if (forward ? arrives[1] : arrives[2])
        input = output + (forward ? -microbatches : microbatches);
    }
    add(played, input, output);
  }
  if (!kind.finish) kind.finish = record_finish(lowering_, recorder_, kind.example, costs_);
  if (const TiedReduction* tied = costs_.tied_at(stage)) {
    const auto place = static_cast<std::size_t>(tied - costs_.tied.data());
    const auto of_first = static_cast<std::int32_t>(2 * (passes_each_way_ + place));
    const auto of_last = of_first + 1;
    const bool first = stage == tied->first;
    add(kind.finish->reductions, BoundSlot::none, first ? of_first : of_last);
    add(kind.finish->tied, first ? of_last : of_first, BoundSlot::all_stages);
  } else {
    add(kind.finish->reductions, BoundSlot::none, BoundSlot::all_stages);
  }
  add(kind.finish->optimizer, BoundSlot::all_stages, BoundSlot::none);
  return bound;
}

}  // namespace shardwise
