#include "simulator/slot_program.hpp"

#include <limits>
#include <utility>

#include "catalog/require.hpp"

namespace shardwise {

SlotRecorder::Mark SlotRecorder::push(SlotStep step) {
  const std::size_t place = register_count + steps_.size();
  require(place <= std::numeric_limits<std::uint16_t>::max(), "a slot has few thousand tasks");
  steps_.push_back(step);
  return {static_cast<std::uint16_t>(place)};
}

SlotRecorder::Mark SlotRecorder::add(int /*stage*/, LaneKind lane, Members /*members*/,
                                     WorkKind work, Seconds duration, TaskTag /*tag*/,
                                     std::span<const Mark* const> after,
                                     std::optional<TrafficKind> /*traffic*/) {
  SlotStep step{.duration = to_picoseconds(duration), .lane = lane, .work = work};
  for (const Mark* mark : after)
    if (!mark->empty()) step.after[step.waits++] = *mark->place;
  return push(step);
}

SlotRecorder::Mark SlotRecorder::arrival(int /*stage*/, LaneKind lane, Seconds duration,
                                         TaskTag /*tag*/, TrafficKind /*traffic*/) {
  return push({.duration = to_picoseconds(duration),
               .lane = lane,
               .work = WorkKind::pipeline_send,
               .arrives = true});
}

SlotProgram record_slot(StepLowering<SlotRecorder>& lowering, SlotRecorder& recorder, int stage,
                        const Slot& slot, bool behind_collective) {
  StepLowering<SlotRecorder>::Cursor at;
  at.stage = stage;
  at.behind_collective = behind_collective;
  const std::array<SlotRecorder::Mark*, register_count> marks{&at.compute, &at.host, &at.reduced,
                                                              &at.loaded};
  for (std::size_t r = 0; r < marks.size(); ++r) marks[r]->place = static_cast<std::uint16_t>(r);
  PassEnds<SlotRecorder::Mark> ends;
  lowering.lower_slot(at, slot, ends);
  SlotProgram program;
  program.steps = recorder.take();
  for (std::size_t r = 0; r < marks.size(); ++r) program.registers[r] = *marks[r]->place;
  program.done = ends.done.place;
  for (const SlotStep& step : program.steps)
    if (step.lane == LaneKind::compute) program.busy += step.duration;
  program.behind_collective = at.behind_collective;
  return program;
}

}  // namespace shardwise
