// Random task graphs without circles, with what is needed to check a timeline of them by other
// means: the predecessors of every task and the tasks of every lane, kept beside the graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "simulator/step/task_graph.hpp"

namespace shardwise {

struct RandomGraph {
  TaskGraph graph;
  int ranks = 0;
  std::vector<std::int64_t> durations;                   // by task, picoseconds
  std::vector<std::vector<std::uint32_t>> predecessors;  // by task: lane order and dependencies
  std::vector<std::vector<std::uint32_t>> tasks_of_lane;
};

// Up to 4 ranks with a compute lane and 3 others each, up to 80 tasks of short durations, so that
// many end together; some joint; dependencies on earlier tasks, in part linked afterwards.
inline RandomGraph random_graph(std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return random() % bound; };
  RandomGraph made;
  made.ranks = 1 + static_cast<int>(below(4));
  std::vector<LaneId> lanes;
  for (int rank = 0; rank < made.ranks; ++rank) {
    for (const LaneKind kind :
         {LaneKind::host, LaneKind::compute, LaneKind::data_comm, LaneKind::expert_comm}) {
      lanes.push_back(made.graph.add_lane(rank, kind));
    }
  }
  made.tasks_of_lane.resize(lanes.size());
  const auto tasks = static_cast<std::uint32_t>(below(80));
  std::vector<std::pair<TaskId, TaskId>> later;
  for (std::uint32_t task = 0; task < tasks; ++task) {
    std::shuffle(lanes.begin(), lanes.end(), random);
    const std::size_t width = below(4) == 0 ? 1 + below(3) : 1;
    made.durations.push_back(static_cast<std::int64_t>(below(6)));
    auto& before = made.predecessors.emplace_back();
    std::vector<TaskId> after;
    for (std::size_t i = 0; i < width; ++i) {
      auto& on_lane = made.tasks_of_lane[lanes[i].index];
      if (!on_lane.empty()) before.push_back(on_lane.back());
      on_lane.push_back(task);
    }
    for (std::size_t i = below(4); task > 0 && i > 0; --i) {
      const TaskId dependency{static_cast<std::uint32_t>(below(task))};
      before.push_back(dependency.index);
      if (below(2) == 0) {
        after.push_back(dependency);
      } else {
        later.emplace_back(dependency, TaskId{task});
      }
    }
    const auto work = static_cast<WorkKind>(below(kWorkKinds));
    const Seconds duration(static_cast<double>(made.durations.back()) * 1e-12);
    made.graph.add_joint(std::span(lanes).first(width), work, duration, {}, after);
  }
  for (const auto& [dependency, task] : later) made.graph.add_dependency(dependency, task);
  return made;
}

// S(t) = max over predecessors u of S(u) + duration(u). Tasks only wait for earlier ones, so one
// pass in the order of adding will do.
inline std::vector<std::int64_t> longest_path_starts(const RandomGraph& made) {
  std::vector<std::int64_t> starts(made.durations.size(), 0);
  for (std::size_t task = 0; task < starts.size(); ++task) {
    for (const std::uint32_t before : made.predecessors[task]) {
      starts[task] = std::max(starts[task], starts[before] + made.durations[before]);
    }
  }
  return starts;
}

}  // namespace shardwise
