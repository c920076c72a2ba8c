#include "simulator/step/flow_clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr SimTime no_end{std::numeric_limits<std::int64_t>::max()};

}  // namespace

FlowClock::FlowClock(const FlowNetwork& network)
    : network_(network), classes_(network.class_count()) {
  require(network.active_classes().empty(), "flows start with the tasks that they are");
  for (Class& c : classes_) c.next_end = no_end;
}

bool FlowClock::later(const Member& a, const Member& b) {
  return a.end_work != b.end_work ? a.end_work > b.end_work : a.sequence > b.sequence;
}

void FlowClock::advance(Class& c, SimTime now) {
  c.work += c.speed * static_cast<double>(now.picoseconds - c.since.picoseconds);
  c.since = now;
}

void FlowClock::reschedule(Class& c) {
  c.next_end = no_end;
  if (c.waiting.empty()) return;
  const double left = std::max(0.0, c.waiting.front().end_work - c.work) / c.speed;
  constexpr double clock_range = 9.2e18;  // just inside int64
  if (static_cast<double>(c.since.picoseconds) + left >= clock_range) return;
  c.next_end = SimTime{c.since.picoseconds + std::llround(left)};
}

void FlowClock::start(TaskId task, TaskGraph::FlowUse use, Picoseconds duration, SimTime now) {
  Class& c = classes_[use.flow_class.index];
  if (c.waiting.empty()) {
    c.work = 0;
    c.speed = 1;
    c.since = now;
  }
  advance(c, now);
  c.waiting.push_back(
      {c.work + static_cast<double>(duration.value), started_++, task, use.members});
  std::push_heap(c.waiting.begin(), c.waiting.end(), later);
  network_.start(use.flow_class, use.members);
  out_of_balance_ = out_of_balance_ || !network_.at_ceilings();
  reschedule(c);
}

void FlowClock::share(SimTime now) {
  out_of_balance_ = false;
  network_.share();
  for (const FlowClassId id : network_.active_classes()) {
    Class& c = classes_[id.index];
    const double speed = network_.speed(id);
    if (speed == c.speed) continue;
    advance(c, now);
    c.speed = speed;
    reschedule(c);
  }
}

void FlowClock::take_finished(FlowClassId id, SimTime now) {
  Class& c = classes_[id.index];
  require(now == c.next_end, "flows end when they are due");
  advance(c, now);
  finished_.clear();
  const double end_work = c.waiting.front().end_work;
  while (!c.waiting.empty() && c.waiting.front().end_work <= end_work) {
    std::pop_heap(c.waiting.begin(), c.waiting.end(), later);
    finished_.push_back(c.waiting.back().task);
    network_.stop(id, c.waiting.back().members);
    c.waiting.pop_back();
  }
  out_of_balance_ = out_of_balance_ || !network_.at_ceilings();
  reschedule(c);
}

}  // namespace shardwise
