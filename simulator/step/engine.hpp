// engine: plays a TaskGraph event by event.
//
// An event is the end of a task. Events are taken in the order (time, sequence), where the
// sequence number counts the events as they are scheduled, so simultaneous ends are taken in the
// order in which they became known. That order is total and depends on nothing but the graph:
// two runs give equal timelines, field by field. Taking an event
//
//   1. counts down each dependent (the next on a lane, a dependency) of the task that ends, in the
//      order of TaskGraph::for_each_dependent;
//   2. starts those that wait for nothing any more, now, and schedules their ends.
//
// Tasks that wait for nothing start at 0, in the order in which they were added. When a plain task
// ends is decided as it starts.
//
// Flows (TaskGraph::share_links) end when flow_clock.hpp says so. Two more kinds of event serve
// them: "members of class c end", of which only the one at the class's present next end counts, and
// "share links anew", which is put behind all that is known to happen at the same instant, so that
// a thousand flows that start together are shared out once.
//
// Cost: one push and one pop of event_queue.hpp per task, and one visit per dependency.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "simulator/step/task_graph.hpp"
#include "simulator/step/timeline.hpp"

namespace shardwise {

// Tasks wait for each other in a circle: such a graph has no timeline.
struct Deadlock {
  // One such circle: each task waits for the one after it, the last for the first.
  std::vector<TaskId> cycle;
  std::size_t blocked = 0;  // tasks that never started, the cycle and all that waits behind it

  friend bool operator==(const Deadlock&, const Deadlock&) = default;
};

// The step is longer than the clock can count (2^63 ps, 106 days).
struct ClockOverflow {
  TaskId task;  // the first whose end is out of range

  friend bool operator==(const ClockOverflow&, const ClockOverflow&) = default;
};

using RunOutcome = std::variant<Timeline, Deadlock, ClockOverflow>;

RunOutcome run(const TaskGraph& graph);

}  // namespace shardwise
