#include "simulator/step/step_player.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/step/lower.hpp"
#include "simulator/step/stage_programs.hpp"
#include "simulator/step/step_builder.hpp"
#include "simulator/step/step_fold.hpp"
#include "simulator/step/step_state.hpp"

namespace shardwise {
namespace {

using Clock = StepClock;
using Stage = StageState;
constexpr Clock unknown = unknown_time, never = never_time;

class StepPlayer {
 public:
  StepPlayer(const ParallelPlan& plan, const PipelineSchedule& schedule, const StepCosts& costs,
             const StepTraffic* traffic, const StepPlayWish& wish)
      : traffic_(traffic),
        programs_(plan, schedule, costs),
        unready_stages_(plan.pipeline),
        state_(traffic != nullptr ? traffic->network : FlowNetwork{}),
        longest_(wish.longest ? wish.longest->picoseconds : never) {
    for (std::size_t m = 0; m < member_kinds; ++m)
      stood_for_[m] = groups_stood_for(plan, 1, static_cast<Members>(m));
    pass_ends_.assign(programs_.passes(), unknown);
    stages_.resize(static_cast<std::size_t>(plan.pipeline));
    state_.consumers.assign(programs_.passes(), -1);
    for (int s = 0; s < plan.pipeline; ++s) open(stages_[static_cast<std::size_t>(s)], s);
    const bool flows = traffic != nullptr && traffic->network.class_count() > 0;
    if (wish.folds && flows) fold_.emplace(state_);
  }

  std::optional<PlayedStages> play() {
    for (const Stage& stage : stages_)
      if (stage.left.value == never) return std::nullopt;  // the clock ends before it
    for (std::uint32_t s = 0; s < stages_.size(); ++s) list(s);
    play_what_is_known();
    while (!overflow_ && !cut_ && play_flow_events()) play_what_is_known();
    if (cut_) {
      PlayedStages played;
      played.makespan = SimTime{*cut_};
      played.cut = true;
      return played;
    }
    for (const Stage& stage : stages_)
      if (stage.played + 1 < stage.ends.size()) return std::nullopt;
    if (overflow_) return std::nullopt;
    return result();
  }

 private:
  void open(Stage& stage, int s) {
    stage.slots = programs_.bind(s);
    for (const BoundSlot& slot : stage.slots) {
      stage.left = in_turn(stage.left, slot.program->span);
      if (slot.input >= 0) state_.consumers[static_cast<std::size_t>(slot.input)] = s;
    }
    const BoundSlot& last = stage.slots.back();
    const std::size_t tasks = last.first + last.program->steps.size();
    stage.starts = std::make_unique_for_overwrite<Clock[]>(tasks);
    stage.ends.assign(tasks, unknown);
    stage.ends.front() = 0;
    stage.waits_on.fill(&step_begin);
    for (std::uint8_t lane = 0; lane < kLaneKinds; ++lane) {
      stage.heads[lane].step_plus_1 = stage.slots.front().program->first_on_lane[lane];
      skip_empty(stage, lane);
      if (stage.heads[lane].step_plus_1 != 0) stage.lanes.push_back(lane);
    }
  }

  // Moves on to the next slot that has tasks on the lane.
  static void skip_empty(Stage& stage, std::size_t lane) {
    LaneHead& head = stage.heads[lane];
    while (head.step_plus_1 == 0 && head.slot + 1 < stage.slots.size())
      head.step_plus_1 = stage.slots[++head.slot].program->first_on_lane[lane];
  }

  void list(std::uint32_t s) {
    if (stages_[s].listed) return;
    stages_[s].listed = true;
    listed_.push_back(s);
  }

  void play_what_is_known() {
    while (!listed_.empty() && !cut_) {
      const std::uint32_t s = listed_.back();
      listed_.pop_back();
      stages_[s].listed = false;
      Stage& stage = stages_[s];
      const std::vector<std::uint8_t>& lanes = stage.lanes;
      // Round and round, until no lane has anything to play.
      for (std::size_t at = 0, idle = 0; idle < lanes.size(); ++at, ++idle) {
        if (at == lanes.size()) at = 0;
        const std::uint8_t lane = lanes[at];
        while (*stage.waits_on[lane] != unknown && play_head(s, lane)) idle = 0;
      }
    }
  }

  // When the input of a slot is there; `unknown` while that is not known.
  const Clock& input(const BoundSlot& slot) const {
    if (slot.input == BoundSlot::none) return step_begin;
    if (slot.input == BoundSlot::all_stages) return all_ready_;
    return pass_ends_[static_cast<std::size_t>(slot.input)];
  }

  // Plays the next task of the lane; whether it could. If not, the lane waits on what is unknown.
  bool play_head(std::uint32_t s, std::size_t lane) {
    Stage& stage = stages_[s];
    const LaneHead head = stage.heads[lane];
    if (head.step_plus_1 == 0) return false;
    const auto wait = [&](const Clock& end) {
      stage.waits_on[lane] = &end;
      return false;
    };
    if (stage.free[lane] == unknown) return wait(stage.free[lane]);
    const BoundSlot& slot = stage.slots[head.slot];
    const std::uint32_t index = head.step_plus_1 - std::uint32_t{1};
    const SlotStep& step = slot.program->steps[index];
    Clock start = stage.free[lane];
    for (std::size_t i = 0; i < step.waits; ++i) {
      const Clock& end = stage.ends[slot.task(step.after[i])];
      if (end == unknown) return wait(end);
      start = std::max(start, end);
    }
    if (step.arrives) {
      const Clock& arrival = input(slot);
      if (arrival == unknown) return wait(arrival);
      start = std::max(start, arrival);
    }
    stage.heads[lane].step_plus_1 = step.next_on_lane;
    skip_empty(stage, lane);
    stage.starts[slot.first + index] = start;
    if (shares_links(s, step)) {
      stage.free[lane] = unknown;
      state_.start_later({start, TaskId{static_cast<std::uint32_t>(flows_.size())}});
      flows_.push_back({s, head.slot, index});
      return true;
    }
    if (step.duration.value >= never - start) overflow_ = true;
    end_task(s, head.slot, index, overflow_ ? start : start + step.duration.value);
    return true;
  }

  bool shares_links(std::uint32_t s, const SlotStep& step) const {
    return traffic_ != nullptr && step.traffic &&
           traffic_->at(static_cast<int>(s), *step.traffic).has_value();
  }

  void end_task(std::uint32_t s, std::uint32_t slot_index, std::uint32_t index, Clock end) {
    Stage& stage = stages_[s];
    const BoundSlot& slot = stage.slots[slot_index];
    const SlotStep& step = slot.program->steps[index];
    const std::uint32_t task = slot.first + index;
    stage.ends[task] = end;
    stage.free[static_cast<std::size_t>(step.lane)] = end;
    ++stage.played;
    if (step.lane == LaneKind::compute) stage.busy += Picoseconds(end - stage.starts[task]);
    if (slot.program->registers.front() == index + register_count) {
      stage.left -= slot.program->span;
      if (stage.left.value >= never - end)
        overflow_ = true;
      else if (end + stage.left.value > longest_)
        cut_ = end + stage.left.value;
    }
    if (slot.output != BoundSlot::none && slot.program->done == index + register_count)
      end_pass(slot.output, end);
  }

  // Tells the stage that waits for it, or all.
  void end_pass(std::int32_t pass, Clock end) {
    const auto stages = static_cast<std::uint32_t>(stages_.size());
    if (pass == BoundSlot::all_stages) {
      last_ready_ = std::max(last_ready_, end);
      if (--unready_stages_ > 0) return;
      all_ready_ = last_ready_;
      for (std::uint32_t each = 0; each < stages; ++each) list(each);
      return;
    }
    pass_ends_[static_cast<std::size_t>(pass)] = end;
    if (fold_) fold_->ended(pass);
    const std::int32_t consumer = state_.consumers[static_cast<std::size_t>(pass)];
    if (consumer >= 0) list(static_cast<std::uint32_t>(consumer));
  }

  // What starts and ends next, all of one instant; whether there was anything.
  bool play_flow_events() {
    Clock now = starting_.empty() ? never : starting_.front().time;
    ending_.clear();
    for (const FlowClassId c : flow_clock_.active_classes()) {
      const Clock end = flow_clock_.next_end(c).picoseconds;
      if (end > now) continue;
      if (end < now) ending_.clear();
      now = end;
      ending_.push_back(c);
    }
    if (now == never) {
      overflow_ = !flow_clock_.active_classes().empty();
      return false;
    }
    for (const FlowClassId c : ending_)
      flow_clock_.finish(c, SimTime{now}, [&](TaskId flow) {
        const StepFlow f = flows_[flow.index];
        end_task(f.stage, f.slot, f.step, now);
        list(f.stage);
      });
    while (!starting_.empty() && starting_.front().time == now) start_flow(now);
    play_what_is_known();
    if (!starting_.empty() && starting_.front().time == now) return true;
    if (flow_clock_.out_of_balance()) flow_clock_.share(SimTime{now});
    if (fold_) fold_->skip(now);
    return true;
  }

  void start_flow(Clock now) {
    const TaskId flow = state_.take_first_start();
    const StepFlow& f = flows_[flow.index];
    const SlotStep& step = stages_[f.stage].slots[f.slot].program->steps[f.step];
    const FlowClassId c = *traffic_->at(static_cast<int>(f.stage), *step.traffic);
    const TaskGraph::FlowUse use{c, stood_for_[static_cast<std::size_t>(step.members)]};
    flow_clock_.start(flow, use, step.duration, SimTime{now});
  }

  std::optional<PlayedStages> result() {
    PlayedStages played;
    if (fold_) played.skipped = fold_->skipped_tasks();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      played.tasks += static_cast<std::int64_t>(stage.played);
      for (const Clock free : stage.free)
        played.makespan = std::max(played.makespan, SimTime{free});
      if (stage.busy > stages_[static_cast<std::size_t>(played.busiest)].busy)
        played.busiest = static_cast<int>(s);
    }
    Stage& busiest = stages_[static_cast<std::size_t>(played.busiest)];
    StepFold::lay_out_skipped(busiest);
    played.summary = account(busiest, played.makespan);
    return played;
  }

  // The last end of what a task waits for, of the host's lane aside.
  Clock end_but_of_host(const Stage& stage, const BoundSlot& slot, const SlotStep& step) const {
    constexpr auto host = static_cast<std::uint16_t>(Register::host);
    Clock last = step.arrives ? input(slot) : 0;
    for (std::size_t i = 0; i < step.waits; ++i) {
      const std::uint16_t place = step.after[i];
      const bool issued = place < register_count
                              ? place == host
                              : slot.program->steps[place - register_count].lane == LaneKind::host;
      if (!issued) last = std::max(last, stage.ends[slot.task(place)]);
    }
    return last;
  }

  RankSummary account(const Stage& stage, SimTime makespan) const {
    std::vector<PlayedWork> waits;  // of the compute lane, for something else than the host
    Clock before = 0;
    std::array<std::vector<PlayedWork>, kLaneKinds> log;
    for (const BoundSlot& slot : stage.slots)
      for (std::size_t i = 0; i < slot.program->steps.size(); ++i) {
        const SlotStep& step = slot.program->steps[i];
        if (step.lane == LaneKind::compute) {
          const Clock there = end_but_of_host(stage, slot, step);
          if (there > before) waits.push_back({SimTime{before}, SimTime{there}});
          before = stage.ends[slot.first + i];
        }
        log[static_cast<std::size_t>(step.lane)].push_back({SimTime{stage.starts[slot.first + i]},
                                                            SimTime{stage.ends[slot.first + i]},
                                                            step.work});
      }
    RankSummary summary;
    IdleAccount idle(makespan);
    const auto as_it_is = [](const PlayedWork& work) { return work; };
    for (std::size_t lane = 0; lane < log.size(); ++lane) {
      const bool computes = static_cast<LaneKind>(lane) == LaneKind::compute;
      if (static_cast<LaneKind>(lane) == LaneKind::host) idle.set_aside(waits);
      idle.cover(log[lane], as_it_is, computes ? summary.busy : summary.exposed);
    }
    summary.bubble = idle.idle();
    return summary;
  }

  const StepTraffic* traffic_;
  std::array<std::int64_t, member_kinds> stood_for_{};  // by Members: groups like it
  StagePrograms programs_;
  int unready_stages_;
  Clock last_ready_ = 0;
  Clock all_ready_ = unknown;  // until every stage is
  StepState state_;
  std::vector<Stage>& stages_ = state_.stages;
  std::vector<Clock>& pass_ends_ = state_.pass_ends;
  std::vector<StepFlow>& flows_ = state_.flows;
  std::vector<StepFlowStart>& starting_ = state_.starting;
  FlowClock& flow_clock_ = state_.clock;
  std::optional<StepFold> fold_;
  std::vector<std::uint32_t> listed_;  // stages that may have something to play
  std::vector<FlowClassId> ending_;
  Clock longest_;
  std::optional<Clock> cut_;  // the least that a step takes that is longer than that
  bool overflow_ = false;
};

}  // namespace

std::optional<PlayedStages> play_stages(const ParallelPlan& plan, const PipelineSchedule& schedule,
                                        const StepCosts& costs, const StepTraffic* traffic,
                                        const StepPlayWish& wish) {
  require(static_cast<int>(costs.stages.size()) == plan.pipeline, "costs for every stage");
  const ParallelPlan rounds = rounds_of(plan, costs);
  return StepPlayer(rounds, schedule, costs, traffic, wish).play();
}

}  // namespace shardwise
