#include "simulator/slot_program.hpp"

#include "catalog/require.hpp"

namespace shardwise {
namespace {

using Cursor = SlotLowering::Cursor;
using Mark = SlotRecorder::Mark;

std::array<Mark*, register_count> registers_of(Cursor& at) {
  return {&at.compute, &at.host, &at.reduced, &at.loaded};
}

Cursor cursor_of(int stage) {
  Cursor at;
  at.stage = stage;
  std::uint16_t place = 0;
  for (Mark* mark : registers_of(at)) mark->place = place++;
  return at;
}

void link_lanes(SlotProgram& program) {
  for (std::size_t i = program.steps.size(); i-- > 0;) {
    SlotStep& step = program.steps[i];
    std::uint16_t& first = program.first_on_lane[static_cast<std::size_t>(step.lane)];
    step.next_on_lane = first;
    first = static_cast<std::uint16_t>(i + 1);
  }
}

SlotProgram finished(SlotRecorder& recorder, Cursor& at, const Mark& done) {
  SlotProgram program;
  program.steps = recorder.take();
  const auto marks = registers_of(at);
  for (std::size_t r = 0; r < marks.size(); ++r) program.registers[r] = *marks[r]->place;
  program.done = done.place.value_or(0);
  program.behind_collective = at.behind_collective;
  link_lanes(program);
  return program;
}

}  // namespace

Mark SlotRecorder::add(int /*stage*/, LaneKind lane, Members members, WorkKind work,
                       Seconds duration, TaskTag /*tag*/, std::span<const Mark* const> after,
                       std::optional<TrafficKind> traffic) {
  SlotStep step;
  step.duration = to_picoseconds(duration);
  step.lane = lane;
  step.work = work;
  step.members = members;
  step.traffic = traffic;
  for (const Mark* mark : after) {
    if (mark->empty()) continue;
    if (*mark->place == input)
      step.arrives = true;
    else
      step.after[step.waits++] = *mark->place;
  }
  const std::size_t place = register_count + steps_.size();
  require(place < input, "a slot has few thousand tasks");
  steps_.push_back(step);
  return {static_cast<std::uint16_t>(place)};
}

Mark SlotRecorder::arrival(int stage, LaneKind lane, Seconds duration, TaskTag tag,
                           const Mark& after, TrafficKind traffic) {
  const Mark from_elsewhere{input};
  const std::array<const Mark*, 2> waits{&from_elsewhere, &after};
  return add(stage, lane, Members::alone, WorkKind::pipeline_send, duration, tag, waits, traffic);
}

SlotProgram record_slot(SlotLowering& lowering, SlotRecorder& recorder, int stage, const Slot& slot,
                        bool behind_collective) {
  Cursor at = cursor_of(stage);
  at.behind_collective = behind_collective;
  PassEnds<Mark> ends;
  lowering.lower_slot(at, slot, ends);
  return finished(recorder, at, ends.done);
}

std::array<SlotProgram, 2> record_finish(SlotLowering& lowering, SlotRecorder& recorder, int stage,
                                         bool waits_for_all_stages) {
  Cursor at = cursor_of(stage);
  const Mark ready = lowering.finish_reductions(at);
  std::array<SlotProgram, 2> programs{finished(recorder, at, ready), {}};
  at = cursor_of(stage);
  const Mark all_ready{SlotRecorder::input};
  const std::array<const Mark*, 1> after{&all_ready};
  lowering.step_optimizer(at, std::span(after).first(waits_for_all_stages ? 1 : 0));
  programs[1] = finished(recorder, at, {});
  return programs;
}

}  // namespace shardwise
