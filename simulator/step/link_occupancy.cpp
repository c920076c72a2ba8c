#include "simulator/step/link_occupancy.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace shardwise {
namespace {

// Whose work it is: what comes from the stage before goes over that stage's link.
struct Use {
  int stage = 0;
  WorkKind work = WorkKind::other;
  bool from_before = false;
  friend auto operator<=>(const Use&, const Use&) = default;
};

std::optional<GroupShape> group_of(const Use& use, int stages, const RankLayout& layout) {
  switch (use.work) {
    case WorkKind::tensor_comm:
      return layout.shape(GroupKind::tensor);
    case WorkKind::context_comm:
      return layout.shape(GroupKind::context);
    case WorkKind::expert_comm:
      return layout.shape(GroupKind::expert);
    case WorkKind::gather_parameters:
      return layout.shape(GroupKind::shard);
    case WorkKind::reduce_gradients:
      return layout.shape(GroupKind::gradient);
    case WorkKind::pipeline_send:
      return layout.pipeline_link(use.from_before ? (use.stage + stages - 1) % stages : use.stage);
    default:
      return std::nullopt;
  }
}

const char* local_name(const LocalLinks& links) {
  if (links.transport == Transport::shm) return "PCIe through host memory";
  return links.kind <= PathKind::nvl ? "NVLink" : "PCIe";
}

std::vector<std::string> links_of(const Use& use, int stages, const RankLayout& layout,
                                  const Topology& topology) {
  if (use.work == WorkKind::offload_copy) return {"host memory"};
  const auto shape = group_of(use, stages, layout);
  if (!shape || shape->ranks < 2) return {};
  std::vector<std::string> names;
  if (shape->ranks_per_node > 1)
    names.emplace_back(local_name(topology.local(shape->ranks_per_node, shape->local_stride)));
  if (shape->nodes > 1) names.emplace_back("network");
  return names;
}

}  // namespace

std::vector<LinkSegment> link_segments(const std::vector<LinkUse>& uses) {
  struct Change {
    SimTime at;
    WorkKind user;
    int by;
  };
  std::vector<Change> changes;
  for (const LinkUse& use : uses) {
    if (use.end <= use.start) continue;
    changes.push_back({use.start, use.user, +1});
    changes.push_back({use.end, use.user, -1});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  std::array<int, kWorkKinds> running{};
  std::vector<LinkSegment> segments;
  for (std::size_t i = 0; i < changes.size();) {
    const SimTime at = changes[i].at;
    for (; i < changes.size() && changes[i].at == at; ++i)
      running[static_cast<std::size_t>(changes[i].user)] += changes[i].by;
    if (i == changes.size()) break;
    LinkSegment segment{at, changes[i].at, {}};
    for (std::size_t w = 0; w < kWorkKinds; ++w)
      segment.users.insert(segment.users.end(), static_cast<std::size_t>(running[w]),
                           static_cast<WorkKind>(w));
    if (segment.users.empty()) continue;
    const bool goes_on = !segments.empty() && segments.back().end == segment.start &&
                         segments.back().users == segment.users;
    if (goes_on)
      segments.back().end = segment.end;
    else
      segments.push_back(std::move(segment));
  }
  return segments;
}

std::vector<LinkOccupancy> link_occupancy(const PlayedStep& step, const RankLayout& layout,
                                          const Topology& topology) {
  const TaskGraph& graph = step.graph();
  std::map<std::pair<int, std::string>, std::vector<LinkUse>> uses;
  std::map<Use, std::vector<std::string>> known;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    for (const LaneId lane : graph.lanes(task)) {
      const int rank = graph.rank(lane);
      if (rank % step.lowered.ranks_per_stage != 0) continue;
      const Use use{rank / step.lowered.ranks_per_stage, graph.work(task),
                    graph.kind(lane) == LaneKind::pipeline_comm};
      auto found = known.find(use);
      if (found == known.end())
        found = known.emplace(use, links_of(use, step.stages(), layout, topology)).first;
      for (const std::string& link : found->second)
        uses[{use.stage, link}].push_back(
            {step.timeline[task].start, step.timeline[task].end, use.work});
    }
  }
  std::vector<LinkOccupancy> links;
  for (const auto& [key, list] : uses) {
    LinkOccupancy link{key.first, key.second, link_segments(list)};
    if (!link.segments.empty()) links.push_back(std::move(link));
  }
  return links;
}

}  // namespace shardwise
