#include "simulator/step/task_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, kLaneKinds> kLaneNames = {
    "compute",        "tensor_comm",    "context_comm",
    "expert_comm",    "pipeline_comm",  "pipeline_comm_backward",
    "data_comm",      "copy_to_device", "copy_to_host",
    "host_optimizer", "loader",         "host"};

static_assert(static_cast<std::size_t>(LaneKind::host) + 1 == kLaneKinds);

constexpr auto kMostIndices = std::numeric_limits<std::uint32_t>::max();

std::uint16_t small(int field) {
  require(field >= 0 && field <= std::numeric_limits<std::uint16_t>::max(),
          "a field of a task's tag is in [0, 65535]");
  return static_cast<std::uint16_t>(field);
}

}  // namespace

std::string_view name(LaneKind kind) { return kLaneNames[static_cast<std::size_t>(kind)]; }

void TaskGraph::reserve(std::size_t tasks, std::size_t dependencies) {
  nodes_.reserve(tasks);
  works_.reserve(tasks);
  tags_.reserve(tasks);
  wait_counts_.reserve(tasks);
  first_occupancy_.reserve(tasks);
  occupancies_.reserve(tasks);
  links_.reserve(tasks + dependencies);
}

LaneId TaskGraph::add_lane(int rank, LaneKind kind) {
  require(rank >= 0, "the rank of a lane is not negative");
  if (rank >= rank_count_) {
    rank_count_ = rank + 1;
    has_compute_.resize(static_cast<std::size_t>(rank_count_), false);
  }
  if (kind == LaneKind::compute) {
    auto has_compute = has_compute_[static_cast<std::size_t>(rank)];
    require(!has_compute, "a rank has at most one compute lane");
    has_compute = true;
  }
  lanes_.push_back({.rank = rank, .kind = kind, .last_task_plus_1 = 0});
  return LaneId{static_cast<std::uint32_t>(lanes_.size() - 1)};
}

TaskId TaskGraph::add(LaneId lane, WorkKind work, Seconds duration, TaskTag tag,
                      std::span<const TaskId> after) {
  return add_joint(std::span(&lane, 1), work, duration, tag, after);
}

TaskId TaskGraph::add(LaneId lane, WorkKind work, Seconds duration, TaskTag tag,
                      std::initializer_list<TaskId> after) {
  return add(lane, work, duration, tag, std::span(after.begin(), after.size()));
}

TaskId TaskGraph::add_joint(std::span<const LaneId> lanes, WorkKind work, Seconds duration,
                            TaskTag tag, std::span<const TaskId> after) {
  require(!lanes.empty(), "a task occupies at least one lane");
  require(task_count() < kMostIndices - 1, "a task graph holds fewer than 2^32 - 1 tasks");
  const TaskId task{static_cast<std::uint32_t>(task_count())};
  nodes_.push_back({.duration = to_picoseconds(duration), .dependent_plus_1 = 0, .more_links = 0});
  works_.push_back(work);
  tags_.push_back({small(tag.stage), small(tag.chunk), small(tag.microbatch), small(tag.layer)});
  wait_counts_.push_back(0);
  first_occupancy_.push_back(static_cast<std::uint32_t>(occupancies_.size()));
  occupancies_.insert(occupancies_.end(), lanes.begin(), lanes.end());
  require(occupancies_.size() < kMostIndices, "a task graph holds fewer than 2^32 occupancies");
  for (const LaneId lane : lanes) {
    require(lane.index < lanes_.size(), "a task's lanes have been added to the same graph");
    std::uint32_t& last = lanes_[lane.index].last_task_plus_1;
    require(last != task.index + 1, "the lanes of a joint task are different ones");
    if (last != 0) link(TaskId{last - 1}, task);
    last = task.index + 1;
  }
  for (const TaskId before : after) add_dependency(before, task);
  return task;
}

void TaskGraph::add_dependency(TaskId before, TaskId after) {
  require(before.index < task_count() && after.index < task_count(),
          "both ends of a dependency have been added to the same graph");
  const auto lanes_before = lanes(before);
  const auto lanes_after = lanes(after);
  const bool lane_order_implies_it = before < after && lanes_before.size() == 1 &&
                                     lanes_after.size() == 1 && lanes_before[0] == lanes_after[0];
  if (!lane_order_implies_it) link(before, after);
}

void TaskGraph::link(TaskId before, TaskId after) {
  require(links_.size() < kMostIndices - 1, "a task graph holds fewer than 2^32 - 1 links");
  Node& node = nodes_[before.index];
  if (node.dependent_plus_1 == 0) {
    node.dependent_plus_1 = after.index + 1;
  } else {
    links_.push_back({.dependent = after.index, .next = node.more_links});
    node.more_links = static_cast<std::uint32_t>(links_.size());
  }
  ++wait_counts_[after.index];
}

void TaskGraph::share_links(TaskId task, FlowClassId flow_class, std::int64_t members) {
  require(task.index < task_count() && flow_class.index < network_.class_count() && members > 0,
          "a flow is a task of the graph and some members of a class of its network");
  require(!is_flow(task), "a task is a flow of one class");
  const FlowUse use{flow_class, members};
  // The last ones first: tasks of a kind are added one after the other.
  const auto known = std::find(flow_uses_.rbegin(), flow_uses_.rend(), use);
  const auto index = known == flow_uses_.rend()
                         ? flow_uses_.size()
                         : static_cast<std::size_t>(flow_uses_.rend() - known) - 1;
  require(index <= std::numeric_limits<std::uint16_t>::max(), "a graph has few kinds of flows");
  if (known == flow_uses_.rend()) flow_uses_.push_back(use);
  if (flow_use_of_.size() <= task.index) flow_use_of_.resize(task.index + std::size_t{1}, 0);
  flow_use_of_[task.index] = static_cast<std::uint16_t>(index);
  Picoseconds& duration = nodes_[task.index].duration;
  duration = Picoseconds(~duration.value);
}

TaskTag TaskGraph::tag(TaskId task) const {
  const auto& fields = tags_[task.index];
  return {.stage = fields[0], .chunk = fields[1], .microbatch = fields[2], .layer = fields[3]};
}

std::span<const LaneId> TaskGraph::lanes(TaskId task) const {
  const std::size_t next = task.index + std::size_t{1};
  const std::size_t end = next < task_count() ? first_occupancy_[next] : occupancies_.size();
  return std::span(occupancies_)
      .subspan(first_occupancy_[task.index], end - first_occupancy_[task.index]);
}

}  // namespace shardwise
