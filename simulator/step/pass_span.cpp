#include "simulator/step/pass_span.hpp"

#include <optional>

namespace shardwise {
namespace {

std::optional<LaneId> compute_lane(const TaskGraph& graph, int rank) {
  for (std::uint32_t lane = 0; lane < graph.lane_count(); ++lane)
    if (graph.rank(LaneId{lane}) == rank && graph.kind(LaneId{lane}) == LaneKind::compute)
      return LaneId{lane};
  return std::nullopt;
}

WorkKind pass_of(WorkKind work) {
  switch (work) {
    case WorkKind::forward:
    case WorkKind::backward:
    case WorkKind::backward_weight:
    case WorkKind::optimizer:
      return work;
    case WorkKind::recompute:
      return WorkKind::backward;
    default:
      return WorkKind::other;
  }
}

}  // namespace

std::vector<PassSpan> pass_spans(const PlayedStep& step, int stage) {
  const TaskGraph& graph = step.graph();
  const auto lane = compute_lane(graph, step.rank_of_stage(stage));
  std::vector<PassSpan> spans;
  if (!lane) return spans;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    const TaskTimes& times = step.timeline[task];
    if (graph.lanes(task).front() != *lane || times.end == times.start) continue;
    const TaskTag tag = graph.tag(task);
    const WorkKind pass = pass_of(graph.work(task));
    const bool same = !spans.empty() && spans.back().pass == pass &&
                      spans.back().chunk == tag.chunk && spans.back().microbatch == tag.microbatch;
    if (!same) spans.push_back({pass, tag.chunk, tag.microbatch, {}});
    spans.back().pieces.push_back({graph.work(task), tag.layer, times.start, times.end});
  }
  return spans;
}

}  // namespace shardwise
