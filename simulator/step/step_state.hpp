// StepState: how far the stages of a step have been played (step_player.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/step/flow_clock.hpp"
#include "simulator/step/stage_programs.hpp"

namespace shardwise {

using StepClock = std::int64_t;  // picoseconds since the step began
inline constexpr StepClock unknown_time = -1;
inline constexpr StepClock never_time = std::numeric_limits<StepClock>::max();
inline constexpr StepClock step_begin = 0;  // an end that is known

// The next task of a lane: a step of a slot; step_plus_1 is 0 behind the last one.
struct LaneHead {
  std::uint32_t slot = 0;
  std::uint16_t step_plus_1 = 0;
};

// Tasks that have been played and stand for as many others `times` over, each time `tasks` further
// on and `delay` later (step_fold.hpp).
struct RepeatedTasks {
  std::vector<std::uint32_t> played;
  std::uint32_t tasks = 0, times = 0;
  StepClock delay = 0;
};

struct StageState {
  std::vector<BoundSlot> slots;
  std::vector<StepClock> ends;          // by task
  std::unique_ptr<StepClock[]> starts;  // likewise, where the task has started
  RepeatedTasks repeated;               // whose times are not all laid out in these
  std::array<LaneHead, kLaneKinds> heads{};
  std::array<StepClock, kLaneKinds> free{};  // unknown: a flow runs on the lane
  // By lane: the end that its next task was found to wait for, to be looked at again once known.
  std::array<const StepClock*, kLaneKinds> waits_on{};
  std::vector<std::uint8_t> lanes;  // those with any tasks
  std::size_t played = 0;           // tasks whose end is known
  Picoseconds busy{};
  Picoseconds left{};   // spans of the slots whose compute mark is to come
  bool listed = false;  // among those to look at
};

// A task that waits for its start, or for its end, by the clock.
struct StepFlow {
  std::uint32_t stage, slot, step;
};
struct StepFlowStart {
  StepClock time;
  TaskId flow;
  friend bool operator>(const StepFlowStart& a, const StepFlowStart& b) {
    return a.time != b.time ? a.time > b.time : a.flow > b.flow;
  }
};

struct StepState {
  std::vector<StageState> stages;
  std::vector<StepClock> pass_ends;
  std::vector<std::int32_t> consumers;  // by pass: the stage that waits for it, or -1
  std::vector<StepFlow> flows;          // by TaskId
  std::vector<StepFlowStart> starting;  // a heap, the earliest in front
  FlowClock clock;

  explicit StepState(const FlowNetwork& network) : clock(network) {}

  void start_later(const StepFlowStart& start) {
    starting.push_back(start);
    std::push_heap(starting.begin(), starting.end(), std::greater<>());
  }
  TaskId take_first_start() {
    std::pop_heap(starting.begin(), starting.end(), std::greater<>());
    const TaskId flow = starting.back().flow;
    starting.pop_back();
    return flow;
  }
};

}  // namespace shardwise
