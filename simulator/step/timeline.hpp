// Timeline: when every task of a graph started and ended, and what each rank did meanwhile.
//
// The account of one rank, exact in picoseconds: every instant of [0, makespan] of its compute lane
// is in one place only,
//
//   makespan = sum(busy) + sum(exposed) + bubble
//
//   busy[k]     a task of work kind k runs on the compute lane
//   exposed[k]  the compute lane is idle while a task of kind k runs on another lane of the same
//               rank; where several run, the first lane in the order of LaneKind is blamed (then
//               the lane added first). exposed[host] is the host-bound idle time of eager steps:
//               from when all is there that the next task waits for but what the host issues.
//   bubble      idle while nothing of the rank's own runs, or only the host, ahead of what the next
//               task waits for: it waits for another rank, or has nothing left to do
//
// The critical path goes back from the task that ends last (of several, the first added), each time
// to the task whose end let it start. Nothing waits in between: the durations along the path add up
// to the makespan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/large_pages.hpp"
#include "simulator/step/idle_account.hpp"
#include "simulator/step/task_graph.hpp"

namespace shardwise {

struct TaskTimes {
  SimTime start;
  SimTime end;
  // The one of those it waited for whose end came last, in the engine's order of events. A task
  // that starts the step holds its own index.
  TaskId released_by;

  friend bool operator==(const TaskTimes&, const TaskTimes&) = default;
};

struct Timeline {
  LargeVector<TaskTimes> tasks;  // by task index
  SimTime makespan;              // the latest end; 0 for an empty graph

  const TaskTimes& operator[](TaskId task) const { return tasks[task.index]; }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

struct RankSummary {
  TimePerWork busy{};
  TimePerWork exposed{};
  Picoseconds bubble{};

  friend bool operator==(const RankSummary&, const RankSummary&) = default;
};

Picoseconds total(const TimePerWork& times);

// One summary per rank of the graph. `timeline` is that of `graph`.
std::vector<RankSummary> summarise_ranks(const TaskGraph& graph, const Timeline& timeline);

// The tasks that each waited for the one before: the first starts with the step, the last ends with
// it. In order of time; empty for an empty graph.
std::vector<TaskId> critical_path(const TaskGraph& graph, const Timeline& timeline);

}  // namespace shardwise
