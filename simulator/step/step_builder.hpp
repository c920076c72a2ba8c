// StepBuilder: adds one stage's work to a TaskGraph for all its replicas at once.
//
// A TaskSet holds one task per replica of a stage; folded there is one replica. Replica r of
// `data x context x tensor` has tensor index r % tensor and data-context index r / tensor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/parallel_plan.hpp"
#include "simulator/step/step_lowering.hpp"
#include "simulator/step/step_traffic.hpp"
#include "simulator/step/task_graph.hpp"
#include "simulator/variation.hpp"

namespace shardwise {

using TaskSet = std::vector<TaskId>;  // by replica; empty: nothing to wait for

// How many groups of the plan a task stands for that `replicas` of each stage's ranks play: the
// members of its flow class.
std::int64_t groups_stood_for(const ParallelPlan& plan, int replicas, Members members);

class StepBuilder {
 public:
  using Mark = TaskSet;

  // `traffic`: nullptr where no two tasks share a link. `variation`: nullptr where kernels take
  // what they cost. Both outlive the builder, and so do plan and costs.
  StepBuilder(const ParallelPlan& plan, const StepCosts& costs, bool unfold,
              const StepTraffic* traffic, const Variation* variation);

  // Appends equal work for every replica of `stage`, on the lane of that kind. `traffic`: what it
  // shares links as.
  TaskSet add(int stage, LaneKind lane, Members members, WorkKind work, Seconds duration,
              TaskTag tag, std::span<const TaskSet* const> after,
              std::optional<TrafficKind> traffic = std::nullopt);
  TaskSet arrival(int stage, LaneKind lane, Seconds duration, TaskTag tag, const TaskSet& after,
                  TrafficKind traffic) {
    const std::array<const TaskSet*, 1> waits{&after};
    return add(stage, lane, Members::alone, WorkKind::pipeline_send, duration, tag, waits, traffic);
  }
  void link(const TaskSet& before, const TaskSet& after);

  int replicas() const { return replicas_; }
  TaskGraph take() { return std::move(graph_); }

 private:
  LaneId lane(int stage, int replica, LaneKind kind);
  // The replicas of one group: first, first + stride, ...
  struct Group {
    int first = 0, stride = 1, count = 1;
  };
  double pace(int stage, int replica, LaneKind kind, const TaskTag& tag);
  Group group(int index, Members members) const;

  int replicas_;
  int tensor_;
  const ParallelPlan& plan_;
  const StepTraffic* traffic_;
  const Variation* variation_;
  const StepCosts& costs_;
  int ranks_;
  bool paced_ = false;                // some task takes more or less than its cost
  std::vector<std::uint64_t> drawn_;  // by rank: tasks that have been given a factor
  TaskGraph graph_;
  std::vector<std::array<std::optional<LaneId>, kLaneKinds>> lanes_;  // [rank][kind]
  std::vector<LaneId> joint_lanes_;
  std::vector<TaskId> joint_after_;
};

}  // namespace shardwise
