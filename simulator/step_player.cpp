#include "simulator/step_player.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/lower.hpp"
#include "simulator/slot_program.hpp"

namespace shardwise {
namespace {

using Clock = std::int64_t;  // picoseconds since the step began
constexpr Clock unknown = -1;

// The lanes of one stage and its marks.
struct StageLanes {
  std::array<Clock, kLaneKinds> free{};
  std::vector<Clock> marks = std::vector<Clock>(register_count, 0);
  bool overflow = false;
};

// The lanes' work of one stage, kept for its account.
using LaneLog = std::array<std::vector<PlayedWork>, kLaneKinds>;

// Moves the lane's clock from `start` on; the last instant of the clock is out of range.
bool overflows(Clock start, Picoseconds duration, Clock& free) {
  return __builtin_add_overflow(start, duration.value, &free) ||
         free == std::numeric_limits<Clock>::max();
}

void run_step(StageLanes& at, const SlotStep& step, std::size_t place, Clock arrival,
              LaneLog* log) {
  Clock& free = at.free[static_cast<std::size_t>(step.lane)];
  Clock start = free;
  if (step.arrives) start = std::max(start, arrival);
  for (std::size_t i = 0; i < step.waits; ++i) start = std::max(start, at.marks[step.after[i]]);
  at.overflow |= overflows(start, step.duration, free);
  at.marks[place] = free;
  if (log != nullptr)
    (*log)[static_cast<std::size_t>(step.lane)].push_back(
        {SimTime{start}, SimTime{free}, step.work});
}

void run_program(StageLanes& at, const SlotProgram& program, Clock arrival, LaneLog* log) {
  if (at.marks.size() < register_count + program.steps.size())
    at.marks.resize(register_count + program.steps.size());
  std::size_t place = register_count;
  for (const SlotStep& step : program.steps) run_step(at, step, place++, arrival, log);
  std::array<Clock, register_count> next{};
  for (std::size_t r = 0; r < register_count; ++r) next[r] = at.marks[program.registers[r]];
  std::copy(next.begin(), next.end(), at.marks.begin());
}

// A Builder that plays at once what it is given: for what follows the slots.
class FinishClock {
 public:
  struct Mark {
    Clock end = unknown;
    bool empty() const { return end == unknown; }
    void clear() { end = unknown; }
  };

  explicit FinishClock(std::vector<StageLanes>& stages) : stages_(stages), logs_(stages.size()) {}

  Mark add(int stage, LaneKind lane, Members /*members*/, WorkKind work, Seconds duration,
           TaskTag /*tag*/, std::span<const Mark* const> after,
           std::optional<TrafficKind> /*traffic*/ = std::nullopt) {
    StageLanes& at = stages_[static_cast<std::size_t>(stage)];
    Clock& free = at.free[static_cast<std::size_t>(lane)];
    Clock start = free;
    for (const Mark* mark : after) start = std::max(start, mark->end);
    at.overflow |= overflows(start, to_picoseconds(duration), free);
    logs_[static_cast<std::size_t>(stage)].push_back({lane, {SimTime{start}, SimTime{free}, work}});
    return {free};
  }
  Mark arrival(int, LaneKind, Seconds, TaskTag, TrafficKind) { return {}; }  // in slots only

  struct Entry {
    LaneKind lane;
    PlayedWork work;
  };
  const std::vector<Entry>& log(std::size_t stage) const { return logs_[stage]; }

 private:
  std::vector<StageLanes>& stages_;
  std::vector<std::vector<Entry>> logs_;
};

class StepPlayer {
 public:
  StepPlayer(const ParallelPlan& plan, const PipelineSchedule& schedule, const StepCosts& costs)
      : plan_(plan),
        schedule_(schedule),
        costs_(costs),
        shape_{plan.pipeline, plan.chunks, plan.microbatches},
        lowering_(plan, schedule, costs, recorder_),
        forward_(ends()),
        backward_(ends()) {
    for (int stage = 0; stage < plan.pipeline; ++stage) open_stage(stage);
  }

  std::optional<PlayedStages> play() {
    // Back and forth, as activations and gradients go.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) moved |= advance(s);
      for (std::size_t s = stages_.size(); s-- > 0;) moved |= advance(s);
    }
    for (const Stage& stage : stages_)
      if (stage.next < stage.order.size()) return std::nullopt;
    return finish();
  }

 private:
  struct Stage {
    std::vector<Slot> order;
    std::size_t next = 0;  // slot to play
    std::size_t kind = 0;
    bool behind_collective = false;
    Picoseconds busy{};
  };
  // What recording a slot of a stage looks at.
  struct StageKind {
    int example = 0;                          // a stage of this kind
    std::vector<std::array<bool, 3>> chunks;  // has model chunk 0; input comes from before; after
    std::array<Seconds, 2> sends{};           // from the stage before; from the one after
    std::vector<std::optional<SlotProgram>> programs;
  };

  std::vector<Clock> ends() const {
    return std::vector<Clock>(static_cast<std::size_t>(lowering_.model_chunks()) *
                                  static_cast<std::size_t>(plan_.microbatches),
                              unknown);
  }
  std::size_t place(int model_chunk, const Slot& slot) const {
    return static_cast<std::size_t>(model_chunk) * static_cast<std::size_t>(plan_.microbatches) +
           static_cast<std::size_t>(slot.microbatch);
  }
  int model_chunk(std::size_t stage, const Slot& slot) const {
    return schedule_.model_chunk(shape_, static_cast<int>(stage), slot.chunk);
  }

  void open_stage(int stage) {
    Stage& opened = stages_.emplace_back();
    opened.order = schedule_.order(shape_, stage);
    lanes_.emplace_back();
    StageKind kind = describe(stage);
    const auto alike = std::find_if(kinds_.begin(), kinds_.end(), [&](const StageKind& k) {
      const StageCosts& a = costs_.stages[static_cast<std::size_t>(k.example)];
      const StageCosts& b = costs_.stages[static_cast<std::size_t>(stage)];
      return k.chunks == kind.chunks && k.sends == kind.sends && a.load == b.load &&
             a.chunks == b.chunks;
    });
    opened.kind = static_cast<std::size_t>(alike - kinds_.begin());
    if (alike == kinds_.end()) kinds_.push_back(std::move(kind));
  }

  StageKind describe(int stage) const {
    StageKind kind;
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

  const SlotProgram& program(const Stage& stage, const Slot& slot) {
    StageKind& kind = kinds_[stage.kind];
    std::size_t at = static_cast<std::size_t>(slot.pass) * static_cast<std::size_t>(plan_.chunks) +
                     static_cast<std::size_t>(slot.chunk);
    at = 2 * at + static_cast<std::size_t>(slot.microbatch == 0);
    at = 2 * at + static_cast<std::size_t>(slot.microbatch == plan_.microbatches - 1);
    at = 2 * at + static_cast<std::size_t>(stage.behind_collective);
    std::optional<SlotProgram>& known = kind.programs[at];
    if (!known)
      known = record_slot(lowering_, recorder_, kind.example, slot, stage.behind_collective);
    return *known;
  }

  // When the input of the slot is there; nothing where that is not known yet.
  std::optional<Clock> input(const Stage& stage, std::size_t s, const Slot& slot) const {
    if (slot.pass == Pass::backward_weight) return 0;
    const auto& [first, from_before, from_after] =
        kinds_[stage.kind].chunks[static_cast<std::size_t>(slot.chunk)];
    const bool forward = slot.pass == Pass::forward;
    if (!(forward ? from_before : from_after)) return 0;
    const int c = model_chunk(s, slot);
    const Clock end = forward ? forward_[place(c - 1, slot)] : backward_[place(c + 1, slot)];
    if (end == unknown) return std::nullopt;
    return end;
  }

  // Plays the slots of a stage as far as they go; whether there was one.
  bool advance(std::size_t s) {
    Stage& stage = stages_[s];
    const std::size_t before = stage.next;
    for (; stage.next < stage.order.size(); ++stage.next) {
      const Slot& slot = stage.order[stage.next];
      const std::optional<Clock> arrival = input(stage, s, slot);
      if (!arrival) break;
      const SlotProgram& played = program(stage, slot);
      run_program(lanes_[s], played, *arrival, nullptr);
      stage.behind_collective = played.behind_collective;
      tasks_ += static_cast<std::int64_t>(played.steps.size());
      stage.busy += played.busy;
      if (!played.done || slot.pass == Pass::backward_weight) continue;
      const Clock done = lanes_[s].marks[*played.done];
      (slot.pass == Pass::forward ? forward_ : backward_)[place(model_chunk(s, slot), slot)] = done;
    }
    return stage.next > before;
  }

  std::optional<PlayedStages> finish() {
    FinishClock clock(lanes_);
    StepLowering<FinishClock> lowering(plan_, schedule_, costs_, clock);
    std::vector<StepLowering<FinishClock>::Cursor> ends(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const std::vector<Clock>& marks = lanes_[s].marks;
      ends[s].stage = static_cast<int>(s);
      ends[s].compute = {marks[static_cast<std::size_t>(Register::compute)]};
      ends[s].reduced = {marks[static_cast<std::size_t>(Register::reduced)]};
    }
    lowering.finish(ends);
    PlayedStages played;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (lanes_[s].overflow) return std::nullopt;
      for (const Clock free : lanes_[s].free)
        played.makespan = std::max(played.makespan, SimTime{free});
      for (const auto& entry : clock.log(s))
        if (entry.lane == LaneKind::compute) stages_[s].busy += length(entry.work);
      tasks_ += static_cast<std::int64_t>(clock.log(s).size());
      if (stages_[s].busy > stages_[static_cast<std::size_t>(played.busiest)].busy)
        played.busiest = static_cast<int>(s);
    }
    played.tasks = tasks_;
    played.summary = account(static_cast<std::size_t>(played.busiest), clock, played.makespan);
    return played;
  }

  // Plays one stage once more, all inputs known, for the account of its ranks.
  RankSummary account(std::size_t s, const FinishClock& clock, SimTime makespan) {
    LaneLog log;
    StageLanes lanes;
    Stage& stage = stages_[s];
    stage.behind_collective = false;
    for (const Slot& slot : stage.order) {
      const SlotProgram& played = program(stage, slot);
      run_program(lanes, played, *input(stage, s, slot), &log);
      stage.behind_collective = played.behind_collective;
    }
    for (const auto& entry : clock.log(s))
      log[static_cast<std::size_t>(entry.lane)].push_back(entry.work);
    RankSummary summary;
    IdleAccount idle(makespan);
    const auto as_it_is = [](const PlayedWork& work) { return work; };
    for (std::size_t lane = 0; lane < log.size(); ++lane) {
      const bool computes = static_cast<LaneKind>(lane) == LaneKind::compute;
      idle.cover(log[lane], as_it_is, computes ? summary.busy : summary.exposed);
    }
    summary.bubble = idle.idle();
    return summary;
  }

  static Picoseconds length(const PlayedWork& work) {
    return Picoseconds(work.end.picoseconds - work.start.picoseconds);
  }

  const ParallelPlan& plan_;
  const PipelineSchedule& schedule_;
  const StepCosts& costs_;
  PipelineShape shape_;
  SlotRecorder recorder_;
  StepLowering<SlotRecorder> lowering_;
  std::vector<Clock> forward_, backward_;  // [model chunk][microbatch]: when the pass has ended
  std::vector<StageKind> kinds_;
  std::vector<Stage> stages_;
  std::vector<StageLanes> lanes_;
  std::int64_t tasks_ = 0;
};

}  // namespace

std::optional<PlayedStages> play_stages(const ParallelPlan& plan, const PipelineSchedule& schedule,
                                        const StepCosts& costs) {
  require(static_cast<int>(costs.stages.size()) == plan.pipeline, "costs for every stage");
  const ParallelPlan rounds = rounds_of(plan, costs);
  return StepPlayer(rounds, schedule, costs).play();
}

}  // namespace shardwise
