#include "simulator/step/step_builder.hpp"

namespace shardwise {

std::int64_t groups_stood_for(const ParallelPlan& plan, int replicas, Members members) {
  const int stood_for = plan.data * plan.context * plan.tensor / replicas;
  switch (members) {
    case Members::alone:
      return stood_for;
    case Members::tensor_group:
      return stood_for == 1 ? 1 : stood_for / plan.tensor;
    case Members::data_group:
      return stood_for == 1 ? 1 : plan.tensor;
    case Members::expert_group:
      return 1;
  }
  return 1;
}

StepBuilder::StepBuilder(const ParallelPlan& plan, const StepCosts& costs, bool unfold,
                         const StepTraffic* traffic, const Variation* variation)
    : replicas_(unfold ? plan.data * plan.context * plan.tensor : 1),
      tensor_(unfold ? plan.tensor : 1),
      plan_(plan),
      traffic_(traffic),
      variation_(unfold ? variation : nullptr),
      costs_(costs),
      ranks_(plan.gpus()),
      drawn_(static_cast<std::size_t>(plan.pipeline * replicas_)),
      lanes_(static_cast<std::size_t>(plan.pipeline * replicas_)) {
  paced_ = variation_ != nullptr;
  for (const StageCosts& stage : costs.stages) paced_ = paced_ || (unfold && !stage.paces.empty());
  if (traffic_ != nullptr) graph_.network() = traffic_->network;
}

LaneId StepBuilder::lane(int stage, int replica, LaneKind kind) {
  const int rank = stage * replicas_ + replica;
  std::optional<LaneId>& slot =
      lanes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(kind)];
  if (!slot) slot = graph_.add_lane(rank, kind);
  return *slot;
}

// How long a task takes on one replica, relative to its cost.
double StepBuilder::pace(int stage, int replica, LaneKind kind, const TaskTag& tag) {
  const bool of_microbatch = kind == LaneKind::compute || kind == LaneKind::host ||
                             kind == LaneKind::tensor_comm || kind == LaneKind::loader;
  if (!paced_ || !of_microbatch) return 1;
  const int rank = stage * replicas_ + replica;
  double time = 1;
  int first = 0;
  for (const RankPace& p : costs_.stages[static_cast<std::size_t>(stage)].paces) {
    if (replica >= first && replica < first + p.ranks)
      time = p.microbatches && tag.microbatch >= *p.microbatches ? 0 : p.time;
    first += p.ranks;
  }
  if (kind != LaneKind::compute) return time > 0 ? 1 : 0;
  if (variation_ == nullptr) return time;
  return time * variation_->factor(rank, drawn_[static_cast<std::size_t>(rank)]++, ranks_);
}

StepBuilder::Group StepBuilder::group(int index, Members members) const {
  switch (members) {
    case Members::alone:
      return {index, 1, 1};
    case Members::tensor_group:
      return {index * tensor_, 1, tensor_};
    case Members::data_group:
      return {index, tensor_, replicas_ / tensor_};
    case Members::expert_group:
      return {0, 1, replicas_};
  }
  return {};
}

TaskSet StepBuilder::add(int stage, LaneKind kind, Members members, WorkKind work, Seconds duration,
                         TaskTag tag, std::span<const TaskSet* const> after,
                         std::optional<TrafficKind> traffic) {
  const auto flow = traffic && traffic_ != nullptr ? traffic_->at(stage, *traffic) : std::nullopt;
  TaskSet set(static_cast<std::size_t>(replicas_));
  const int groups = replicas_ / group(0, members).count;
  for (int index = 0; index < groups; ++index) {
    const Group g = group(index, members);
    joint_lanes_.clear();
    joint_after_.clear();
    for (int i = 0, r = g.first; i < g.count; ++i, r += g.stride) {
      joint_lanes_.push_back(lane(stage, r, kind));
      for (const TaskSet* before : after)
        if (!before->empty()) joint_after_.push_back((*before)[static_cast<std::size_t>(r)]);
    }
    const Seconds time = pace(stage, g.first, kind, tag) * duration;
    const TaskId task = graph_.add_joint(joint_lanes_, work, time, tag, joint_after_);
    if (flow) graph_.share_links(task, *flow, groups_stood_for(plan_, replicas_, members));
    for (int i = 0, r = g.first; i < g.count; ++i, r += g.stride)
      set[static_cast<std::size_t>(r)] = task;
  }
  return set;
}

void StepBuilder::link(const TaskSet& before, const TaskSet& after) {
  for (std::size_t r = 0; r < before.size(); ++r) graph_.add_dependency(before[r], after[r]);
}

}  // namespace shardwise
