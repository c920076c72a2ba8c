#include "simulator/step/timeline.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <tuple>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

// The tasks of every lane in their order: those of lane l are tasks[first[l]] up to first[l + 1].
class TasksByLane {
 public:
  explicit TasksByLane(const TaskGraph& graph) : first_(graph.lane_count() + 1, 0) {
    const auto tasks = static_cast<std::uint32_t>(graph.task_count());
    for (std::uint32_t task = 0; task < tasks; ++task) {
      for (const LaneId lane : graph.lanes(TaskId{task})) ++first_[lane.index + std::size_t{1}];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    tasks_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t task = 0; task < tasks; ++task) {
      for (const LaneId lane : graph.lanes(TaskId{task})) tasks_[next[lane.index]++] = TaskId{task};
    }
  }

  std::span<const TaskId> on(LaneId lane) const {
    const std::size_t begin = first_[lane.index];
    return std::span(tasks_).subspan(begin, first_[lane.index + std::size_t{1}] - begin);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<TaskId> tasks_;
};

// All lanes: by rank, then in the order of blame.
std::vector<LaneId> lanes_in_order_of_blame(const TaskGraph& graph) {
  std::vector<LaneId> lanes;
  lanes.reserve(graph.lane_count());
  for (std::uint32_t lane = 0; lane < graph.lane_count(); ++lane) lanes.push_back(LaneId{lane});
  std::sort(lanes.begin(), lanes.end(), [&](LaneId a, LaneId b) {
    return std::tuple(graph.rank(a), graph.kind(a), a) <
           std::tuple(graph.rank(b), graph.kind(b), b);
  });
  return lanes;
}

// By task the last end of what it waits for, of the host's lanes aside.
std::vector<SimTime> ends_but_of_hosts(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<SimTime> ends(graph.task_count());
  for (std::uint32_t t = 0; t < graph.task_count(); ++t) {
    if (graph.kind(graph.lanes(TaskId{t}).front()) == LaneKind::host) continue;
    graph.for_each_dependent(TaskId{t}, [&](TaskId dependent) {
      SimTime& end = ends[dependent.index];
      end = std::max(end, timeline.tasks[t].end);
    });
  }
  return ends;
}

// Between the tasks of a compute lane, while the next one waits for something else than the host.
std::vector<PlayedWork> waits_but_for_the_host(std::span<const TaskId> tasks,
                                               const std::vector<SimTime>& others,
                                               const Timeline& timeline) {
  std::vector<PlayedWork> waits;
  SimTime before;
  for (const TaskId task : tasks) {
    if (others[task.index] > before) waits.push_back({before, others[task.index]});
    before = timeline[task].end;
  }
  return waits;
}

}  // namespace

Picoseconds total(const TimePerWork& times) {
  return std::accumulate(times.begin(), times.end(), Picoseconds{});
}

std::vector<RankSummary> summarise_ranks(const TaskGraph& graph, const Timeline& timeline) {
  require(timeline.tasks.size() == graph.task_count(),
          "a timeline goes with the graph it was run on");
  const TasksByLane tasks(graph);
  const std::vector<LaneId> lanes = lanes_in_order_of_blame(graph);
  const auto played = [&](TaskId task) {
    return PlayedWork{timeline[task].start, timeline[task].end, graph.work(task)};
  };
  std::vector<RankSummary> summaries(static_cast<std::size_t>(graph.rank_count()));
  const std::vector<SimTime> others = ends_but_of_hosts(graph, timeline);
  auto lane = lanes.begin();
  for (std::size_t rank = 0; rank < summaries.size(); ++rank) {
    RankSummary& summary = summaries[rank];
    IdleAccount account(timeline.makespan);
    std::vector<PlayedWork> waits;
    for (; lane != lanes.end() && graph.rank(*lane) == static_cast<int>(rank); ++lane) {
      const bool computes = graph.kind(*lane) == LaneKind::compute;
      if (computes) waits = waits_but_for_the_host(tasks.on(*lane), others, timeline);
      if (graph.kind(*lane) == LaneKind::host) account.set_aside(waits);
      account.cover(tasks.on(*lane), played, computes ? summary.busy : summary.exposed);
    }
    summary.bubble = account.idle();
  }
  return summaries;
}

std::vector<TaskId> critical_path(const TaskGraph& graph, const Timeline& timeline) {
  require(timeline.tasks.size() == graph.task_count(),
          "a timeline goes with the graph it was run on");
  std::vector<TaskId> path;
  if (timeline.tasks.empty()) return path;
  const auto last =
      std::find_if(timeline.tasks.begin(), timeline.tasks.end(),
                   [&](const TaskTimes& task) { return task.end == timeline.makespan; });
  TaskId task{static_cast<std::uint32_t>(last - timeline.tasks.begin())};
  while (timeline[task].released_by != task) {
    path.push_back(task);
    task = timeline[task].released_by;
  }
  path.push_back(task);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace shardwise
