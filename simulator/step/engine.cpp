#include "simulator/step/engine.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "simulator/step/event_queue.hpp"
#include "simulator/step/flow_clock.hpp"

namespace shardwise {
namespace {

// Until a task starts, its `released_by` counts the ends that it still waits for: one word less per
// task, and it lies where the start is about to be written.
class Engine {
 public:
  explicit Engine(const TaskGraph& graph)
      : graph_(graph),
        tasks_(static_cast<std::uint32_t>(graph.task_count())),
        flows_(graph.network()),
        announced_(flows_.class_count(), nothing_announced) {
    timeline_.tasks.resize(graph.task_count());
    for (std::size_t task = 0; task < graph.task_count(); ++task) {
      timeline_.tasks[task].released_by.index = graph.wait_counts()[task];
    }
  }

  // Plays every event that comes. Stops early where the clock would overflow.
  void play() {
    for (std::uint32_t task = 0; task < tasks_; ++task) {
      if (graph_.wait_counts()[task] == 0) start(TaskId{task}, TaskId{task}, SimTime{});
    }
    while (!queue_.empty() && !overflow_) {
      const Event event = queue_.pop([this](std::span<const Event> events) { read_ahead(events); });
      if (event.task.index < tasks_)
        finish(event);
      else
        play_flow_event(event.task.index - tasks_, event.time);
    }
  }

  std::optional<ClockOverflow> overflow() const { return overflow_; }
  bool all_ended() const { return ended_ == graph_.task_count(); }
  Timeline take_timeline() { return std::move(timeline_); }

 private:
  void start(TaskId task, TaskId released_by, SimTime now) {
    if (graph_.is_flow(task)) return start_flow(task, released_by, now);
    const std::int64_t duration = graph_.duration(task).value;
    if (duration >= std::numeric_limits<std::int64_t>::max() - now.picoseconds) {
      if (!overflow_) overflow_ = ClockOverflow{task};
      return;
    }
    const SimTime end{now.picoseconds + duration};
    timeline_.tasks[task.index] = {.start = now, .end = end, .released_by = released_by};
    queue_.push({end, task});
  }

  void finish(Event event) {
    ++ended_;
    timeline_.makespan = event.time;  // events come in order of time
    graph_.for_each_dependent(event.task, [&](TaskId dependent) {
      std::uint32_t& waits_for = timeline_.tasks[dependent.index].released_by.index;
      if (--waits_for == 0) start(dependent, event.task, event.time);
    });
  }

  [[gnu::noinline]] void start_flow(TaskId task, TaskId released_by, SimTime now) {
    timeline_.tasks[task.index] = {.start = now, .end = now, .released_by = released_by};
    const TaskGraph::FlowUse& use = graph_.flow(task);
    flows_.start(task, use, graph_.duration(task), now);
    announce(use.flow_class, task);
    ask_to_share(now);
  }

  // Event tasks_ + c: members of class c end; tasks_ + classes: links are shared anew.
  void play_flow_event(std::uint32_t which, SimTime now) {
    if (which == flows_.class_count()) {
      sharing_asked_ = false;
      flows_.share(now);
      for (const FlowClassId c : flows_.active_classes()) announce(c, TaskId{});
      return;
    }
    const FlowClassId c{which};
    // Of two announcements of one time the second finds the class moved on.
    if (flows_.next_end(c) != now || announced_[which] != now) return;
    announced_[which] = nothing_announced;
    ending_.clear();
    flows_.finish(c, now, [this](TaskId task) { ending_.push_back(task); });
    announce(c, TaskId{});
    ask_to_share(now);
    for (const TaskId task : ending_) {
      timeline_.tasks[task.index].end = now;
      finish({now, task});
    }
  }

  // Puts the next end of the class into the queue, unless it is there.
  void announce(FlowClassId c, TaskId started) {
    const SimTime end = flows_.next_end(c);
    if (end.picoseconds == std::numeric_limits<std::int64_t>::max()) {
      if (flows_.active(c) && !overflow_) overflow_ = ClockOverflow{started};
      return;
    }
    if (announced_[c.index] == end) return;
    announced_[c.index] = end;
    queue_.push({end, TaskId{tasks_ + c.index}});
  }

  void ask_to_share(SimTime now) {
    if (sharing_asked_ || !flows_.out_of_balance()) return;
    sharing_asked_ = true;
    queue_.push({now, TaskId{tasks_ + static_cast<std::uint32_t>(flows_.class_count())}});
  }

  // Asks for the memory that the next ends will touch, a few dozen requests at a time, so that they
  // wait for it together and not one after the other.
  [[gnu::always_inline]] void read_ahead(std::span<const Event> events) const {
    const auto touch = [this](TaskId task) { __builtin_prefetch(&timeline_.tasks[task.index], 1); };
    for (const Event& event : events)
      if (event.task.index < tasks_) graph_.prefetch(event.task);
    for (const Event& event : events)
      if (event.task.index < tasks_) graph_.prefetch_first_dependent(event.task, touch);
    for (const Event& event : events)
      if (event.task.index < tasks_) graph_.prefetch_second_dependent(event.task, touch);
  }

  static constexpr SimTime nothing_announced{-1};

  const TaskGraph& graph_;
  std::uint32_t tasks_;
  EventQueue queue_;
  Timeline timeline_;
  FlowClock flows_;
  std::vector<SimTime> announced_;  // by flow class: the end that the queue knows last
  std::vector<TaskId> ending_;
  bool sharing_asked_ = false;
  std::size_t ended_ = 0;
  std::optional<ClockOverflow> overflow_;
};

// For each task that no order of events can start, one that it waits for and that cannot start
// either; for all others nothing.
std::vector<std::optional<TaskId>> blockers(const TaskGraph& graph) {
  const auto tasks = static_cast<std::uint32_t>(graph.task_count());
  auto waits_for = graph.wait_counts();
  std::vector<TaskId> ready;
  for (std::uint32_t task = 0; task < tasks; ++task) {
    if (waits_for[task] == 0) ready.push_back(TaskId{task});
  }
  while (!ready.empty()) {
    const TaskId task = ready.back();
    ready.pop_back();
    graph.for_each_dependent(task, [&](TaskId dependent) {
      if (--waits_for[dependent.index] == 0) ready.push_back(dependent);
    });
  }
  std::vector<std::optional<TaskId>> blocker(tasks);
  for (std::uint32_t task = 0; task < tasks; ++task) {
    if (waits_for[task] == 0) continue;
    graph.for_each_dependent(TaskId{task}, [&](TaskId dependent) {
      if (!blocker[dependent.index]) blocker[dependent.index] = TaskId{task};
    });
  }
  return blocker;
}

// Going from a blocked task to its blocker, and on, must come back to a task already seen.
Deadlock find_deadlock(const TaskGraph& graph) {
  const auto blocker = blockers(graph);
  Deadlock deadlock;
  std::optional<TaskId> at;
  for (const auto& task : blocker) {
    if (!task) continue;
    ++deadlock.blocked;
    if (!at) at = task;
  }
  std::vector<bool> seen(blocker.size(), false);
  for (; !seen[at->index]; at = blocker[at->index]) seen[at->index] = true;
  const auto closing = at;
  do {
    deadlock.cycle.push_back(*at);
    at = blocker[at->index];
  } while (at != closing);
  return deadlock;
}

}  // namespace

RunOutcome run(const TaskGraph& graph) {
  Engine engine(graph);
  engine.play();
  if (const auto overflow = engine.overflow()) return *overflow;
  if (!engine.all_ended()) return find_deadlock(graph);
  return engine.take_timeline();
}

}  // namespace shardwise
