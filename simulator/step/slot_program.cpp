#include "simulator/step/slot_program.hpp"

#include <algorithm>

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

// The longest way through the steps from one of these to one of those: whatever else they wait for
// can only delay that.
struct SpanEnds {
  bool from_lane = false;   // the compute mark before is the end of a task of the compute lane
  bool from_input = false;  // what comes from other stages comes no earlier than that mark
  bool to_any = false;      // else to the compute mark that is left
};

Picoseconds span_of(const SlotProgram& program, const SpanEnds& between) {
  constexpr auto compute = static_cast<std::size_t>(Register::compute);
  std::vector<std::optional<Picoseconds>> ends(register_count + program.steps.size());
  ends[compute] = Picoseconds{};
  std::array<std::optional<Picoseconds>, kLaneKinds> lanes;
  if (between.from_lane) lanes[static_cast<std::size_t>(LaneKind::compute)] = Picoseconds{};
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const SlotStep& step = program.steps[i];
    auto& lane = lanes[static_cast<std::size_t>(step.lane)];
    if (step.arrives && between.from_input) lane = lane.value_or(Picoseconds{});
    for (std::size_t a = 0; a < step.waits; ++a) lane = std::max(lane, ends[step.after[a]]);
    if (lane) lane = in_turn(*lane, step.duration);
    ends[register_count + i] = lane;
  }
  if (between.to_any) return std::max_element(ends.begin(), ends.end())->value_or(Picoseconds{});
  return ends[program.registers[compute]].value_or(Picoseconds{});
}

SlotProgram finished(SlotRecorder& recorder, Cursor& at, const Mark& done,
                     const SpanEnds& between) {
  SlotProgram program;
  program.steps = recorder.take();
  const auto marks = registers_of(at);
  for (std::size_t r = 0; r < marks.size(); ++r) program.registers[r] = *marks[r]->place;
  program.done = done.place.value_or(0);
  program.behind_collective = at.behind_collective;
  link_lanes(program);
  program.span = span_of(program, between);
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
  return finished(recorder, at, ends.done, {.from_lane = !behind_collective});
}

FinishPrograms record_finish(SlotLowering& lowering, SlotRecorder& recorder, int stage,
                             const StepCosts& costs) {
  FinishPrograms programs;
  const Mark from_elsewhere{SlotRecorder::input};
  const bool tied = costs.tied_at(stage) != nullptr;
  Cursor at = cursor_of(stage);
  const Mark ready = lowering.finish_reductions(at);
  if (tied) at.compute = ready;
  programs.reductions = finished(recorder, at, ready, {.to_any = true});
  if (tied) {
    at = cursor_of(stage);
    const Mark own = at.compute;
    at.compute = lowering.reduce_tied(at, own, from_elsewhere);
    programs.tied = finished(recorder, at, at.compute, {.from_lane = true, .to_any = true});
  }
  at = cursor_of(stage);
  const std::array<const Mark*, 1> after{&from_elsewhere};
  lowering.step_optimizer(at, std::span(after).first(costs.waits_for_all_stages ? 1 : 0));
  programs.optimizer = finished(recorder, at, {}, {true, true, true});
  return programs;
}

}  // namespace shardwise
