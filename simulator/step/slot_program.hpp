// SlotProgram: what one pipeline slot does to the lanes of its stage, as a list of steps that are
// played for every microbatch without lowering the slot again.
//
// A stage keeps *marks*, the ends of work that later work waits for. The first few are registers,
// which live from slot to slot; the others are the steps of the slot itself. With E the marks and
// free(l) when lane l is free, step i of duration d on lane l is
//
//   S = max( free(l), E(marks it waits for), when its input is there )     E(i) = free(l) = S + d
//
// which is the rule of task_graph.hpp; nothing else is known here of how time goes. Two slots have
// the same program where they run the same pass of equal stages and both are, or are not, of the
// first and of the last microbatch: StepLowering looks at nothing else, and says where it did not
// look at that either.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/step/step_lowering.hpp"

namespace shardwise {

// Marks that live from slot to slot, in the order of their places.
enum class Register : std::uint8_t { compute, host, reduced, loaded };
inline constexpr std::size_t register_count = 4;

struct SlotStep {
  Picoseconds duration;
  std::array<std::uint16_t, 6> after{};  // places of marks: registers, then steps of this slot
  std::uint16_t next_on_lane = 0;        // step + 1; 0: the last one of its lane
  std::uint8_t waits = 0;                // how many of `after` count
  LaneKind lane = LaneKind::compute;
  WorkKind work = WorkKind::other;
  Members members = Members::alone;
  bool arrives = false;                // waits for the slot's input from other stages
  std::optional<TrafficKind> traffic;  // what it shares links as
  friend bool operator==(const SlotStep&, const SlotStep&) = default;
};

struct SlotProgram {
  std::vector<SlotStep> steps;
  std::array<std::uint16_t, kLaneKinds> first_on_lane{};  // step + 1; 0: none
  std::array<std::uint16_t, register_count> registers{};  // the mark that each takes over
  // From the compute mark that it finds to the one it leaves, at the least; of the two that end a
  // step, to their own ends.
  Picoseconds span{};
  std::uint16_t done = 0;          // the mark that other stages wait for
  bool behind_collective = false;  // StepLowering::Cursor's, after the slot
  friend bool operator==(const SlotProgram&, const SlotProgram&) = default;
};

// A Builder that writes down what one slot adds.
class SlotRecorder {
 public:
  struct Mark {
    std::optional<std::uint16_t> place;
    bool empty() const { return !place.has_value(); }
    void clear() { place.reset(); }
  };
  static constexpr std::uint16_t input = 0xffff;  // the place of what comes from other stages

  Mark add(int stage, LaneKind lane, Members members, WorkKind work, Seconds duration, TaskTag tag,
           std::span<const Mark* const> after, std::optional<TrafficKind> traffic = std::nullopt);
  Mark arrival(int stage, LaneKind lane, Seconds duration, TaskTag tag, const Mark& after,
               TrafficKind traffic);
  std::vector<SlotStep> take() { return std::move(steps_); }

 private:
  std::vector<SlotStep> steps_;
};

using SlotLowering = StepLowering<SlotRecorder>;

// What the slot does on its stage; `behind_collective`: as the slot before it left that.
SlotProgram record_slot(SlotLowering& lowering, SlotRecorder& recorder, int stage, const Slot& slot,
                        bool behind_collective);

// Those that end a stage's step: what is left of its reductions; the reduction of what it has tied
// to another stage, whose input is there when that one has done with the former; then its
// optimizer, whose input is there when every stage has done with these, where the costs say that it
// waits for them.
struct FinishPrograms {
  SlotProgram reductions, tied, optimizer;
};
FinishPrograms record_finish(SlotLowering& lowering, SlotRecorder& recorder, int stage,
                             const StepCosts& costs);

}  // namespace shardwise
