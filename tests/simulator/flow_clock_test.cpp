// Flows in the engine: tasks that share links take longer while others want the same links.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <variant>
#include <vector>

#include "simulator/step/engine.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/played_graph.hpp"

using namespace shardwise;

namespace {

Seconds ms(double n) { return Seconds(n * 1e-3); }
std::int64_t in_picoseconds(double milliseconds) { return std::llround(milliseconds * 1e9); }

// A graph with one link of capacity 10 and a lane for each flow.
struct OneLink {
  TaskGraph graph;
  LinkId link = graph.network().add_link(BytesPerSecond(10));

  FlowClassId flow_class(double ceiling) {
    return graph.network().add_class(BytesPerSecond(ceiling), std::array<FlowLoad, 1>{{{link}}});
  }
  TaskId flow(FlowClassId c, double milliseconds, std::vector<TaskId> after = {}) {
    const LaneId lane = graph.add_lane(static_cast<int>(graph.lane_count()), LaneKind::compute);
    const TaskId task = graph.add(lane, WorkKind::offload_copy, ms(milliseconds), {}, after);
    graph.share_links(task, c);
    return task;
  }
  TaskId wait(double milliseconds) {
    const LaneId lane = graph.add_lane(static_cast<int>(graph.lane_count()), LaneKind::compute);
    return graph.add(lane, WorkKind::other, ms(milliseconds));
  }
};

}  // namespace

TEST_CASE("a flow alone takes its duration to the picosecond", "[flow_clock]") {
  OneLink net;
  const TaskId task = net.flow(net.flow_class(10), 12.345678901);
  const Timeline t = play(net.graph);
  CHECK(t[task].end.picoseconds == net.graph.duration(task).value);
  CHECK(t.makespan == t[task].end);
}

// Both can fill the link. Alone 4 ms and 10 ms. Together each has half: the short one ends at 8,
// when the long one has done 4 of its 10; it does the other 6 alone and ends at 14.
TEST_CASE("the longer of two flows speeds up when the shorter has ended", "[flow_clock]") {
  OneLink net;
  const TaskId a = net.flow(net.flow_class(10), 4);
  const TaskId b = net.flow(net.flow_class(10), 10);
  const Timeline t = play(net.graph);
  CHECK(t[a].end.picoseconds == in_picoseconds(8));
  CHECK(t[b].end.picoseconds == in_picoseconds(14));
}

// b starts at 6, when a has done 6 of its 10; both at half speed. a does the other 4 by 14; b has
// done 4 of its 5 then, and ends at 15. The end of a that was known at first, 10, must not count.
TEST_CASE("a flow that starts later slows the other down", "[flow_clock]") {
  OneLink net;
  const TaskId a = net.flow(net.flow_class(10), 10);
  const TaskId b = net.flow(net.flow_class(10), 5, {net.wait(6)});
  const Timeline t = play(net.graph);
  CHECK(t[a].end.picoseconds == in_picoseconds(14));
  CHECK(t[b].start.picoseconds == in_picoseconds(6));
  CHECK(t[b].end.picoseconds == in_picoseconds(15));
  CHECK(t[b].released_by.index != b.index);
}

// A flow that wants 2 of the 10 is not slowed; the other has the remaining 8.
TEST_CASE("a modest flow keeps its speed", "[flow_clock]") {
  OneLink net;
  const TaskId modest = net.flow(net.flow_class(2), 20);
  const TaskId greedy = net.flow(net.flow_class(10), 8);
  const Timeline t = play(net.graph);
  CHECK(t[modest].end.picoseconds == in_picoseconds(20));
  CHECK(t[greedy].end.picoseconds == in_picoseconds(10));
}

// Members of one class: three start at 0, 1 and 2 ms and take 3 ms each at full speed.
//   0-1   one at 1:     a did 1
//   1-2   two at 1/2:   a 1.5, b 0.5
//   2-6.5 three at 1/3: a 3 at 6.5; b 2, c 1.5
//   to 8.5 two at 1/2:  b 3, c 2.5;   c alone does 0.5: 9
TEST_CASE("members of one class come and go", "[flow_clock]") {
  OneLink net;
  const FlowClassId c = net.flow_class(10);
  const TaskId first = net.flow(c, 3);
  const TaskId second = net.flow(c, 3, {net.wait(1)});
  const TaskId third = net.flow(c, 3, {net.wait(2)});
  const Timeline t = play(net.graph);
  CHECK(t[first].end.picoseconds == in_picoseconds(6.5));
  CHECK(t[second].end.picoseconds == in_picoseconds(8.5));
  CHECK(t[third].end.picoseconds == in_picoseconds(9));
}

TEST_CASE("flows of no duration end when they start", "[flow_clock]") {
  OneLink net;
  const FlowClassId c = net.flow_class(10);
  const TaskId first = net.flow(c, 0);
  const TaskId second = net.flow(c, 0, {first});
  const TaskId other = net.flow(c, 2, {second});
  const Timeline t = play(net.graph);
  CHECK(t[second].end.picoseconds == 0);
  CHECK(t[other].end.picoseconds == in_picoseconds(2));
}

// 200 ms of work for a link that serves one at a time: whatever the order, work conservation says
// that the last flow ends when all the work is done, as long as all want the whole link.
TEST_CASE("a full link is never idle", "[flow_clock]") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    OneLink net;
    double sum = 0;
    for (int i = 0; i < 20; ++i) {
      const double length = std::uniform_int_distribution<int>(1, 20)(random);
      net.flow(net.flow_class(10), length);
      sum += length;
    }
    const Timeline t = play(net.graph);
    // Every flow's end is rounded to a picosecond.
    CHECK(std::abs(t.makespan.picoseconds - in_picoseconds(sum)) <= 20);
  }
}

// What folding rests on: n equal members, started one by one at one instant, end to the picosecond
// when one task ends that stands for n members.
TEST_CASE("one task of n members ends with n tasks of one", "[flow_clock]") {
  for (const int n : {2, 3, 7, 128}) {
    const auto ends = [n](bool folded) {
      TaskGraph graph;
      const LinkId link = graph.network().add_link(BytesPerSecond(10));
      const auto member = [&](double ceiling, double weight) {
        return graph.network().add_class(BytesPerSecond(ceiling),
                                         std::array<FlowLoad, 1>{{{link, weight}}});
      };
      const FlowClassId ring = member(7, 1.0 / n), copy = member(9, 1);
      int rank = 0;
      std::vector<std::int64_t> found;
      for (int i = 0; i < (folded ? 1 : n); ++i) {
        const LaneId lane = graph.add_lane(rank++, LaneKind::data_comm);
        TaskId last{};
        for (const double length : {1.1, 3.7, 0.3}) {
          last = graph.add(lane, WorkKind::reduce_gradients, ms(length));
          graph.share_links(last, ring, folded ? n : 1);
        }
        if (i == 0) found.push_back(last.index);
      }
      const LaneId other = graph.add_lane(rank, LaneKind::copy_to_host);
      for (const double length : {0.7, 2.9}) {
        const TaskId task = graph.add(other, WorkKind::offload_copy, ms(length));
        graph.share_links(task, copy);
        graph.add(other, WorkKind::other, ms(0.123));
        found.push_back(task.index);
      }
      const Timeline t = play(graph);
      for (std::int64_t& task : found)
        task = t[TaskId{static_cast<std::uint32_t>(task)}].end.picoseconds;
      found.push_back(t.makespan.picoseconds);
      return found;
    };
    INFO("members " << n);
    CHECK(ends(true) == ends(false));
  }
}
