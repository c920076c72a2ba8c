// A pipeline schedule as a task graph and nothing else: one compute lane per stage, its slots in
// order, and the dependencies that pipeline_schedule.hpp states. Sends take no time. For tests and
// the engine's benchmark; the simulator lowers whole plans.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/step/task_graph.hpp"

namespace shardwise {

// Times of one chunk. A whole backward takes input + weight; a pair takes `pair`, or the sum.
struct PassTimes {
  Seconds forward;
  Seconds backward_input;
  Seconds backward_weight;
  std::optional<Seconds> pair;
};

class SlotLowering {
 public:
  SlotLowering(const PipelineSchedule& schedule, PipelineShape shape)
      : schedule_(schedule), shape_(shape), tasks_(kPasses * points()) {}

  // Adds the stages of one pipeline to `graph`, as ranks first_rank .. first_rank + stages - 1.
  void add_to(TaskGraph& graph, PassTimes times, int first_rank = 0) {
    tasks_.assign(tasks_.size(), std::nullopt);
    for (int stage = 0; stage < shape_.stages; ++stage) {
      const LaneId lane = graph.add_lane(first_rank + stage, LaneKind::compute);
      const std::vector<Slot> slots = schedule_.order(shape_, stage);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const bool pair = slots[i].paired_with_next;
        Seconds duration = time(slots[i].pass, times);
        if (pair) duration = times.pair.value_or(duration + time(slots[i + 1].pass, times));
        const WorkKind work =
            slots[i].pass == Pass::forward ? WorkKind::forward : WorkKind::backward;
        const TaskId task = graph.add(lane, work, duration,
                                      {.stage = stage,
                                       .chunk = slots[i].chunk,
                                       .microbatch = slots[i].microbatch,
                                       .layer = 0});
        at(slots[i], stage) = task;
        if (pair) at(slots[++i], stage) = task;
      }
    }
    link(graph);
  }

 private:
  static constexpr std::size_t kPasses = 3;  // forward, backward(_input), backward_weight

  std::size_t points() const {
    return static_cast<std::size_t>(schedule_.model_chunks(shape_) * shape_.microbatches);
  }

  static Seconds time(Pass pass, PassTimes times) {
    switch (pass) {
      case Pass::forward:
        return times.forward;
      case Pass::backward:
        return times.backward_input + times.backward_weight;
      case Pass::backward_input:
        return times.backward_input;
      case Pass::backward_weight:
        return times.backward_weight;
    }
    return {};
  }

  std::optional<TaskId>& at(std::size_t pass, int microbatch, int model_chunk) {
    const auto point = static_cast<std::size_t>(model_chunk * shape_.microbatches + microbatch);
    return tasks_[pass * points() + point];
  }
  std::optional<TaskId>& at(Slot slot, int stage) {
    const std::size_t pass = slot.pass == Pass::forward           ? 0U
                             : slot.pass == Pass::backward_weight ? 2U
                                                                  : 1U;
    auto& task = at(pass, slot.microbatch, schedule_.model_chunk(shape_, stage, slot.chunk));
    require(!task.has_value(), "a microbatch passes a model chunk once per pass");
    return task;
  }

  void link(TaskGraph& graph) {
    const int chunks = schedule_.model_chunks(shape_);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
        const TaskId forward = at(0, microbatch, chunk).value();
        const TaskId backward = at(1, microbatch, chunk).value();
        graph.add_dependency(forward, backward);
        if (chunk > 0) {
          graph.add_dependency(at(0, microbatch, chunk - 1).value(), forward);
          graph.add_dependency(backward, at(1, microbatch, chunk - 1).value());
        }
        if (const auto weight = at(2, microbatch, chunk)) graph.add_dependency(backward, *weight);
      }
    }
  }

  const PipelineSchedule& schedule_;
  PipelineShape shape_;
  std::vector<std::optional<TaskId>> tasks_;
};

}  // namespace shardwise
