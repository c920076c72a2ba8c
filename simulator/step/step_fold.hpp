// StepFold: the middle of a long step, skipped.
//
// A pipeline settles: from some microbatch on every stage does again what it did one period (a
// round of microbatches) before, a time D later. Whether it does is not assumed but read off the
// state of the play. What is to come depends on the state between two instants only through
//
//   - the next slots of every stage, as programs and as passes that they wait for and end,
//   - the next task of each lane, when the lane is free, and the ends that later tasks wait for,
//   - the flows that run or are about to start, and how far they are,
//
// each time relative to now, and one that has passed as good as any other that has: all that is not
// yet played waits for a flow that ends or starts now or later. Where two states agree after
// counting slots and microbatches from one period later, the play between them repeats as long as
// the slots do, picosecond for picosecond: clocks are whole numbers, and a flow counts its own work
// from 0. So the tasks of one period stand for those r periods on, r D later, and the play goes on
// from there. What is still to come waits for the last of these only, whose ends are laid out; the
// others are where somebody asks for the whole stage.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/step/step_state.hpp"

namespace shardwise {

class StepFold {
 public:
  // Before anything is played. `state` outlives this.
  explicit StepFold(StepState& state);

  // The pass has ended: its end is in the state.
  void ended(std::int32_t pass) {
    const std::int32_t stage = state_.consumers[static_cast<std::size_t>(pass)];
    if (stage >= 0) ++stages_[static_cast<std::size_t>(stage)].inputs_known;
  }

  // Everything up to and at `now` has been played and links are shared. Skips what repeats, if
  // anything does; returns the instant at which the play then stands.
  StepClock skip(StepClock now) {
    const bool period_begins =
        period_ > 0 && state_.stages.front().heads[compute].slot >= (seen_ + 1) * period_;
    return period_begins ? skip_from(now) : now;
  }

  std::int64_t skipped_tasks() const { return skipped_; }

  // Enters when the tasks that were skipped started and ended.
  static void lay_out_skipped(StageState& stage);

 private:
  static constexpr auto compute = static_cast<std::size_t>(LaneKind::compute);

  // The slots of a stage that repeat: first <= q <= last.
  struct Stage {
    std::uint32_t first = 0, last = 0;
    std::uint32_t tasks = 0;  // of a period
    // Lanes with tasks in a period: those that wait for anything, and those that never do, such as
    // a host that is not held up.
    std::array<bool, kLaneKinds> in{}, ahead{};
    std::size_t inputs_known = 0;
    // Slots that were looked at, and how many of them wait for a pass.
    std::uint32_t counted_to = 0;
    std::size_t inputs_counted = 0;
    std::uint32_t low = 0, high = 0;  // slots with tasks to come, now: of lanes that repeat
  };
  struct Snapshot {
    StepClock now = 0;
    std::uint32_t periods = 0;
    std::vector<StepClock> state;
    std::vector<Picoseconds> busy, left;  // by stage
  };

  StepClock skip_from(StepClock now);
  bool find_period();
  bool repeats(const BoundSlot& slot, const BoundSlot& later) const;
  bool find_range(std::size_t s);
  bool locate();
  void describe(StepClock now, std::uint32_t periods, std::vector<StepClock>& to);
  void describe_stage(std::size_t s, StepClock now, std::uint32_t base, std::vector<StepClock>& to);
  void describe_inputs(std::size_t s, StepClock now, std::vector<StepClock>& to);
  std::uint32_t periods_left(std::uint32_t each) const;
  bool waits_on(std::size_t s, std::uint32_t skipped) const;
  bool all_wait_on(std::uint32_t each, std::uint32_t times) const;
  bool stays_ahead(std::size_t s, StepClock then, StepClock delay, std::uint32_t periods) const;
  void jump(const Snapshot& from, std::uint32_t periods, std::uint32_t times, StepClock delay);
  void repeat_tasks(std::size_t s, const Snapshot& from, std::uint32_t periods, std::uint32_t times,
                    StepClock delay);

  StepState& state_;
  std::vector<Stage> stages_;
  std::uint32_t period_ = 0;       // in slots of every stage; 0: no more to look for
  std::int32_t microbatches_ = 0;  // of a period
  std::uint32_t seen_ = 0;         // periods of the first stage's compute lane
  std::uint32_t snapshots_ = 0;
  Snapshot anchor_, last_;
  std::int64_t skipped_ = 0;
};

}  // namespace shardwise
