#include "simulator/step/step_fold.hpp"

#include <algorithm>
#include <bit>

namespace shardwise {
namespace {

// What has passed is as good as now.
StepClock from_now(StepClock time, StepClock now) {
  return time == unknown_time ? unknown_time : std::max<StepClock>(0, time - now);
}

bool moved(std::int32_t pass, std::int32_t later, std::int32_t by) {
  return pass >= 0 ? later - pass == by : pass == BoundSlot::none && later == pass;
}

}  // namespace

StepFold::StepFold(StepState& state) : state_(state), stages_(state.stages.size()) {
  if (!find_period()) return;
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (!find_range(s)) {
      period_ = 0;
      return;
    }
}

bool StepFold::repeats(const BoundSlot& slot, const BoundSlot& later) const {
  return slot.program == later.program && moved(slot.input, later.input, microbatches_) &&
         moved(slot.output, later.output, microbatches_);
}

// After so many slots those of the first stage repeat for longest; of equally long, the fewest.
bool StepFold::find_period() {
  const std::vector<BoundSlot>& slots = state_.stages.front().slots;
  const auto middle = static_cast<std::uint32_t>(slots.size() / 2);
  std::uint32_t best = 0, longest = 0;
  std::int32_t microbatches = 0;
  for (std::uint32_t c = 1; 3 * c < slots.size() && 2 * longest < slots.size(); ++c) {
    microbatches_ = 0;
    for (std::uint32_t q = middle - c; q < middle && microbatches_ == 0; ++q)
      if (slots[q].output >= 0) microbatches_ = slots[q + c].output - slots[q].output;
    period_ = c;
    if (microbatches_ <= 0 || !find_range(0)) continue;
    const std::uint32_t length = stages_.front().last - stages_.front().first;
    if (length <= longest || length < 2 * c) continue;
    longest = length;
    best = c;
    microbatches = microbatches_;
  }
  period_ = best;
  microbatches_ = microbatches;
  return best > 0;
}

bool StepFold::find_range(std::size_t s) {
  const std::vector<BoundSlot>& slots = state_.stages[s].slots;
  const auto same = [&](std::uint32_t q) {
    return q + period_ < slots.size() && repeats(slots[q], slots[q + period_]);
  };
  const auto middle = static_cast<std::uint32_t>(slots.size() / 2) - period_ / 2;
  if (!same(middle)) return false;
  Stage& stage = stages_[s];
  stage = {};
  stage.first = stage.last = middle;
  while (stage.first > 0 && same(stage.first - 1)) --stage.first;
  while (same(stage.last + 1)) ++stage.last;
  stage.last += period_;
  stage.tasks = slots[stage.first + period_].first - slots[stage.first].first;
  std::array<bool, kLaneKinds> waits{}, any{};
  for (std::uint32_t q = stage.first; q < stage.first + period_; ++q)
    for (const SlotStep& step : slots[q].program->steps) {
      const auto lane = static_cast<std::size_t>(step.lane);
      any[lane] = true;
      waits[lane] = waits[lane] || step.waits > 0 || step.arrives || step.traffic;
    }
  for (std::size_t lane = 0; lane < kLaneKinds; ++lane) {
    stage.in[lane] = waits[lane] || (lane == compute && any[lane]);
    stage.ahead[lane] = any[lane] && !stage.in[lane];
  }
  return stage.in[compute];
}

// Where the lanes that repeat have got to; whether all of them are among the slots that do.
bool StepFold::locate() {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    stage.low = stage.last;
    stage.high = 0;
    for (std::size_t lane = 0; lane < kLaneKinds; ++lane) {
      const LaneHead head = state_.stages[s].heads[lane];
      if (stage.ahead[lane] && head.step_plus_1 != 0 && head.slot <= stage.last) return false;
      if (!stage.in[lane]) continue;
      stage.low = std::min(stage.low, state_.stages[s].heads[lane].slot);
      stage.high = std::max(stage.high, state_.stages[s].heads[lane].slot);
    }
    if (stage.high > stage.last) return false;
  }
  // A lane is past the slot of a flow that still runs.
  const auto lower = [&](TaskId flow) {
    const StepFlow& f = state_.flows[flow.index];
    stages_[f.stage].low = std::min(stages_[f.stage].low, f.slot);
  };
  for (const StepFlowStart& f : state_.starting) lower(f.flow);
  state_.clock.each_flow(lower);
  return std::all_of(stages_.begin(), stages_.end(),
                     [](const Stage& stage) { return stage.low >= stage.first; });
}

void StepFold::describe_inputs(std::size_t s, StepClock now, std::vector<StepClock>& to) {
  Stage& stage = stages_[s];
  const std::vector<BoundSlot>& slots = state_.stages[s].slots;
  for (; stage.counted_to < stage.low; ++stage.counted_to)
    stage.inputs_counted += static_cast<std::size_t>(slots[stage.counted_to].input >= 0);
  std::size_t left = stage.inputs_known - stage.inputs_counted;
  to.push_back(static_cast<StepClock>(left));
  for (std::uint32_t q = stage.low; left > 0; ++q) {
    if (slots[q].input < 0) continue;
    const StepClock end = state_.pass_ends[static_cast<std::size_t>(slots[q].input)];
    if (end == unknown_time) continue;
    to.push_back(q - stage.low);
    to.push_back(from_now(end, now));
    --left;
  }
}

void StepFold::describe_stage(std::size_t s, StepClock now, std::uint32_t base,
                              std::vector<StepClock>& to) {
  const Stage& stage = stages_[s];
  const StageState& state = state_.stages[s];
  to.push_back(StepClock{stage.low} - base);
  to.push_back(StepClock{stage.high} - base);
  for (const std::uint8_t lane : state.lanes) {
    if (stage.ahead[lane]) continue;
    const LaneHead head = state.heads[lane];
    to.push_back(stage.in[lane] ? StepClock{head.slot} - base : StepClock{head.slot});
    to.push_back(head.step_plus_1);
    to.push_back(from_now(state.free[lane], now));
  }
  for (const std::uint32_t task : state.slots[stage.low].registers)
    to.push_back(from_now(state.ends[task], now));
  for (std::uint32_t t = state.slots[stage.low].first; t < state.slots[stage.high + 1].first; ++t)
    to.push_back(from_now(state.ends[t], now));
  describe_inputs(s, now, to);
}

void StepFold::describe(StepClock now, std::uint32_t periods, std::vector<StepClock>& to) {
  const std::uint32_t base = periods * period_;
  const auto name = [&](TaskId flow) {
    const StepFlow& f = state_.flows[flow.index];
    to.push_back(f.stage);
    to.push_back(StepClock{f.slot} - base);
    to.push_back(f.step);
  };
  to.clear();
  state_.clock.describe(SimTime{now}, to, name);
  std::vector<StepFlowStart> starting = state_.starting;
  std::sort(starting.begin(), starting.end(),
            [](const StepFlowStart& a, const StepFlowStart& b) { return b > a; });
  to.push_back(static_cast<StepClock>(starting.size()));
  for (const StepFlowStart& f : starting) {
    to.push_back(f.time - now);
    name(f.flow);
  }
  for (std::size_t s = 0; s < stages_.size(); ++s) describe_stage(s, now, base, to);
}

// A lane that has nothing to do among the slots that repeat waits for a task that is still to come
// when so many tasks of the stage have been skipped: one behind those slots, or one of theirs that
// stands where one stands now that is to come as well.
bool StepFold::waits_on(std::size_t s, std::uint32_t skipped) const {
  const StageState& state = state_.stages[s];
  const std::uint32_t first = state.slots[stages_[s].low].first;
  const std::uint32_t end = state.slots[stages_[s].last + 1].first;
  const auto comes_later = [&](std::uint32_t task) {
    if (task >= end) return state.ends[task] == unknown_time;
    return task >= first + skipped && state.ends[task - skipped] == unknown_time;
  };
  return std::all_of(state.lanes.begin(), state.lanes.end(), [&](std::uint8_t lane) {
    const LaneHead head = state.heads[lane];
    if (stages_[s].in[lane] || head.step_plus_1 == 0) return true;
    const BoundSlot& slot = state.slots[head.slot];
    const SlotStep& step = slot.program->steps[head.step_plus_1 - std::size_t{1}];
    if (step.arrives && slot.input == BoundSlot::all_stages) return true;
    return std::any_of(step.after.begin(), step.after.begin() + step.waits,
                       [&](std::uint16_t place) { return comes_later(slot.task(place)); });
  });
}

// What runs ahead of everything has long been done with whatever the stages wait for between `then`
// and now, and gains on them. Not known where the slots that it is held against, so many periods
// before, are none of those that repeat.
bool StepFold::stays_ahead(std::size_t s, StepClock then, StepClock delay,
                           std::uint32_t periods) const {
  const Stage& stage = stages_[s];
  const StageState& state = state_.stages[s];
  const std::uint32_t earliest = stage.first + periods * period_;
  for (std::uint32_t q = stage.high - period_ + 1; q <= stage.high; ++q) {
    const std::vector<SlotStep>& steps = state.slots[q].program->steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!stage.ahead[static_cast<std::size_t>(steps[i].lane)]) continue;
      if (q < earliest) return false;
      const std::size_t task = state.slots[q].first + i;
      const StepClock end = state.ends[task];
      if (end > then || end - state.ends[task - periods * stage.tasks] > delay) return false;
    }
  }
  return true;
}

// How often all stages can go on by `each` periods more.
std::uint32_t StepFold::periods_left(std::uint32_t each) const {
  std::uint32_t least = ~std::uint32_t{0};
  for (const Stage& stage : stages_)
    least = std::min(least, (stage.last - stage.high) / (each * period_));
  return least;
}

bool StepFold::all_wait_on(std::uint32_t each, std::uint32_t times) const {
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (!waits_on(s, times * each * stages_[s].tasks)) return false;
  return true;
}

StepClock StepFold::skip_from(StepClock now) {
  const std::uint32_t periods = state_.stages.front().heads[compute].slot / period_;
  seen_ = periods;
  if (!locate()) return now;
  if (periods_left(1) == 0) {
    period_ = 0;
    return now;
  }
  Snapshot here{now, periods, {}, {}, {}};
  here.state.reserve(last_.state.size());
  describe(now, periods, here.state);
  for (const StageState& stage : state_.stages) {
    here.busy.push_back(stage.busy);
    here.left.push_back(stage.left);
  }
  // The one before, and one that stays while the distance to it grows.
  for (const Snapshot* known : {&last_, &anchor_}) {
    if (known->state != here.state) continue;
    const std::uint32_t each = periods - known->periods;
    const StepClock delay = now - known->now;
    std::uint32_t times = periods_left(each);
    if (!all_wait_on(each, times) && times > 0 && !all_wait_on(each, --times)) continue;
    bool may = times > 0 && delay < (never_time / 2 - now) / times;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      may = may && stays_ahead(s, known->now, delay, each);
    if (!may) continue;
    jump(*known, each, times, delay);
    period_ = 0;
    return now + times * delay;
  }
  if (std::has_single_bit(++snapshots_)) anchor_ = here;
  last_ = std::move(here);
  return now;
}

void StepFold::lay_out_skipped(StageState& stage) {
  const RepeatedTasks& r = stage.repeated;
  for (std::uint32_t i = 1; i <= r.times; ++i)
    for (const std::uint32_t task : r.played) {
      stage.starts[task + i * r.tasks] = stage.starts[task] + i * r.delay;
      stage.ends[task + i * r.tasks] = stage.ends[task] + i * r.delay;
    }
}

// Repeats what the stage has played since `from`, and moves its lanes on. A slot waits for tasks of
// its own, for marks that are set in every period, no more than a period back, and for what was
// there before all that repeats: so of slots from the lowest on, for the ends of so many times.
void StepFold::repeat_tasks(std::size_t s, const Snapshot& from, std::uint32_t periods,
                            std::uint32_t times, StepClock delay) {
  const Stage& stage = stages_[s];
  StageState& state = state_.stages[s];
  const std::uint32_t slots = periods * period_, tasks = periods * stage.tasks;
  const std::uint32_t high_then = stage.high - slots;
  const std::uint32_t known_then = state.slots[high_then + 1].first;
  state.repeated = {{}, tasks, times, delay};
  std::vector<std::uint32_t>& since = state.repeated.played;
  for (std::uint32_t q = stage.low - slots; q <= stage.high; ++q)
    for (std::uint32_t t = state.slots[q].first; t < state.slots[q + 1].first; ++t) {
      const SlotStep& step = state.slots[q].program->steps[t - state.slots[q].first];
      if (stage.ahead[static_cast<std::size_t>(step.lane)]) continue;
      const bool then = t < known_then && state.ends[t + tasks] != unknown_time;
      if (state.ends[t] == unknown_time || then) continue;
      since.push_back(t);
      const BoundSlot& slot = state.slots[q];
      if (slot.output < 0 || slot.task(slot.program->done) != t) continue;
      for (std::uint32_t i = 1; i <= times; ++i) {
        const auto later = static_cast<std::int32_t>(i * periods) * microbatches_;
        state_.pass_ends[static_cast<std::size_t>(slot.output + later)] = state.ends[t] + i * delay;
      }
    }
  const std::uint32_t waited_for = (stage.high - stage.low) / slots + 3;
  for (std::uint32_t i = times > waited_for ? times - waited_for + 1 : 1; i <= times; ++i)
    for (const std::uint32_t t : since) state.ends[t + i * tasks] = state.ends[t] + i * delay;
  state.played += since.size() * times;
  skipped_ += static_cast<std::int64_t>(since.size()) * times;
  state.busy += std::int64_t{times} * (state.busy - from.busy[s]);
  state.left -= std::int64_t{times} * (from.left[s] - state.left);
  for (const std::uint8_t lane : state.lanes) {
    if (!stage.in[lane]) continue;
    state.heads[lane].slot += times * slots;
    state.waits_on[lane] = &step_begin;
    if (state.free[lane] != unknown_time) state.free[lane] += times * delay;
  }
}

void StepFold::jump(const Snapshot& from, std::uint32_t periods, std::uint32_t times,
                    StepClock delay) {
  for (std::size_t s = 0; s < stages_.size(); ++s) repeat_tasks(s, from, periods, times, delay);
  const auto move = [&](TaskId flow) {
    StepFlow& f = state_.flows[flow.index];
    StageState& stage = state_.stages[f.stage];
    const StepClock start = stage.starts[stage.slots[f.slot].first + f.step];
    f.slot += times * periods * period_;
    stage.starts[stage.slots[f.slot].first + f.step] = start + times * delay;
  };
  for (StepFlowStart& f : state_.starting) {
    f.time += times * delay;
    move(f.flow);
  }
  state_.clock.each_flow(move);
  state_.clock.delay(Picoseconds(times * delay));
}

}  // namespace shardwise
