// StagePrograms: the slots of every stage bound to their programs, equal stages to the same ones.
//
// Binding numbers the tasks of a stage in program order from 1 (0: the begin of the step), and says
// for every slot which of them its registers stand for and which passes of other stages it waits
// for. A *pass* is one of one microbatch through one model chunk; they are numbered as well.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "simulator/step/slot_program.hpp"

namespace shardwise {

struct BoundSlot {
  static constexpr std::int32_t none = -1;
  static constexpr std::int32_t all_stages = -2;

  const SlotProgram* program = nullptr;
  std::uint32_t first = 0;                                // its first task
  std::array<std::uint32_t, register_count> registers{};  // tasks
  std::int32_t input = none;   // the pass whose end its input comes from; or of every stage
  std::int32_t output = none;  // the pass whose end is its `done`; or that of the stage

  std::uint32_t task(std::uint16_t place) const {
    if (place < register_count) return registers[place];
    return first + static_cast<std::uint32_t>(place - register_count);
  }
};

class StagePrograms {
 public:
  // All arguments outlive this.
  StagePrograms(const ParallelPlan& plan, const PipelineSchedule& schedule, const StepCosts& costs);

  // The stage's slots in order, and those that end its step.
  std::vector<BoundSlot> bind(int stage);
  // Those through model chunks each way, and the ends of the reductions of any two stages that have
  // something tied.
  std::size_t passes() const { return 2 * (passes_each_way_ + costs_.tied.size()); }

 private:
  using Asked = SlotLowering::Asked;

  // A program that was recorded, of a slot of the first or last microbatch or of neither, and which
  // of that it depends on.
  struct Recorded {
    std::size_t of = 0;  // pass, chunk and whether it is behind a collective
    Asked is, asked;
    const SlotProgram* program = nullptr;
  };

  // What recording a slot of a stage looks at; the costs are those of an example.
  struct Kind {
    int example = 0;
    std::vector<std::array<bool, 3>> chunks;   // has model chunk 0; input comes from before; after
    std::array<Seconds, 2> sends{};            // from the stage before; from the one after
    std::optional<Seconds> tied;               // reduction with another stage
    std::vector<const SlotProgram*> programs;  // nullptr: not recorded yet
    std::deque<SlotProgram> distinct;          // what they point to, equal ones once
    std::vector<Recorded> recorded;
    std::optional<FinishPrograms> finish;
  };

  Kind describe(int stage) const;
  Kind& kind_of(int stage);
  const SlotProgram& program(Kind& kind, const Slot& slot, bool behind_collective);
  const SlotProgram& recorded(Kind& kind, const Slot& slot, bool behind_collective, std::size_t of,
                              Asked is);

  const ParallelPlan& plan_;
  const PipelineSchedule& schedule_;
  const StepCosts& costs_;
  PipelineShape shape_;
  SlotRecorder recorder_;
  SlotLowering lowering_;
  std::size_t passes_each_way_;
  std::deque<Kind> kinds_;  // stable addresses
};

}  // namespace shardwise
