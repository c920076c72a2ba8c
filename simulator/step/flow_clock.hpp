// FlowClock: when the flows of a FlowNetwork end, as speeds change under way.
//
// Every member of a class has the same speed v(t). So one number per class, the work done since it
// became active, W(t) = integral of v dt in seconds at full speed, tells how far each member is:
// one that starts when W = w and takes d at full speed ends when W = w + d. Members wait in the
// order of that figure; a change of speed moves the end of the first one only.
//
// Work is counted in picoseconds. At full speed all figures are whole numbers, so a flow that is
// never slowed down ends to the picosecond when a plain task would.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/network/flow_network.hpp"
#include "simulator/step/task_graph.hpp"

namespace shardwise {

class FlowClock {
 public:
  // A copy of the network, with nothing active.
  explicit FlowClock(const FlowNetwork& network);

  std::size_t class_count() const { return classes_.size(); }

  // `duration`: at full speed. Speeds are those of the last share().
  void start(TaskId task, TaskGraph::FlowUse use, Picoseconds duration, SimTime now);

  // Whether speeds may have to change since the last share().
  bool out_of_balance() const { return out_of_balance_; }
  void share(SimTime now);

  // When the first member of an active class ends if nothing changes; the largest time for never.
  SimTime next_end(FlowClassId c) const { return classes_[c.index].next_end; }
  bool active(FlowClassId c) const { return network_.active(c) > 0; }

  // All that decides when the flows of now end and how what starts later fares, counted from `now`;
  // name(TaskId) adds whose flow it is. REQUIRES !out_of_balance().
  template <class Name>
  void describe(SimTime now, std::vector<std::int64_t>& to, Name name) const {
    to.push_back(static_cast<std::int64_t>(active_classes().size()));
    for (const FlowClassId id : active_classes()) {
      const Class& c = classes_[id.index];
      to.push_back(id.index);
      to.push_back(std::bit_cast<std::int64_t>(c.work));
      to.push_back(std::bit_cast<std::int64_t>(c.speed));
      to.push_back(c.since.picoseconds - now.picoseconds);
      to.push_back(c.next_end.picoseconds - now.picoseconds);
      to.push_back(static_cast<std::int64_t>(c.waiting.size()));
      for (const Member& m : c.waiting) {
        to.push_back(std::bit_cast<std::int64_t>(m.end_work));
        to.push_back(m.members);
        name(m.task);
      }
    }
  }

  template <class Each>
  void each_flow(Each each) const {
    for (const FlowClassId id : active_classes())
      for (const Member& m : classes_[id.index].waiting) each(m.task);
  }

  // Everything under way happens so much later. REQUIRES that every active class has a next end,
  // and has it within the clock after that.
  void delay(Picoseconds by) {
    for (const FlowClassId id : active_classes()) {
      Class& c = classes_[id.index];
      c.since.picoseconds += by.value;
      c.next_end.picoseconds += by.value;
    }
  }
  const std::vector<FlowClassId>& active_classes() const { return network_.active_classes(); }

  // Ends the first member of the class and all that end with it, and calls ended(TaskId) for each
  // in the order in which they started. REQUIRES now == next_end(c).
  template <class Ended>
  void finish(FlowClassId c, SimTime now, Ended ended) {
    take_finished(c, now);
    for (const TaskId task : finished_) ended(task);
  }

 private:
  struct Member {
    double end_work;  // [ps]
    std::uint64_t sequence;
    TaskId task;
    std::int64_t members;
  };
  struct Class {
    double work = 0;  // [ps] done at `since`
    double speed = 1;
    SimTime since;
    SimTime next_end;
    std::vector<Member> waiting;  // a heap: the first to end in front
  };

  static bool later(const Member& a, const Member& b);
  static void advance(Class& c, SimTime now);
  static void reschedule(Class& c);
  void take_finished(FlowClassId id, SimTime now);

  FlowNetwork network_;
  std::vector<Class> classes_;
  std::vector<TaskId> finished_;
  std::uint64_t started_ = 0;
  bool out_of_balance_ = false;
};

}  // namespace shardwise
