#include "simulator/step/engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <variant>
#include <vector>

#include "catalog/require.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/played_graph.hpp"
#include "tests/simulator/random_graph.hpp"

using namespace shardwise;

namespace {

bool runs(const Timeline& timeline, TaskId task, std::int64_t start, std::int64_t end) {
  return timeline[task].start == SimTime{start} && timeline[task].end == SimTime{end};
}

}  // namespace

TEST_CASE("A lane runs its tasks in the order of adding, one at a time") {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  const TaskId a = graph.add(lane, WorkKind::forward, ps(5));
  const TaskId b = graph.add(lane, WorkKind::forward, ps(0));
  const TaskId c = graph.add(lane, WorkKind::forward, ps(7));
  const Timeline timeline = play(graph);
  CHECK(runs(timeline, a, 0, 5));
  CHECK(runs(timeline, b, 5, 5));
  CHECK(runs(timeline, c, 5, 12));
  CHECK(timeline.makespan == SimTime{12});
}

TEST_CASE("A task waits for its dependencies, also for those that were added later") {
  // a 0-5 on lane 0; late 0-9 on lane 1; b after both: 9-12.
  TaskGraph graph;
  const LaneId first = graph.add_lane(0, LaneKind::compute);
  const LaneId second = graph.add_lane(0, LaneKind::data_comm);
  const TaskId a = graph.add(first, WorkKind::forward, ps(5));
  const TaskId b = graph.add(first, WorkKind::forward, ps(3), {}, {a});
  const TaskId late = graph.add(second, WorkKind::gather_parameters, ps(9));
  graph.add_dependency(late, b);
  const Timeline timeline = play(graph);
  CHECK(runs(timeline, b, 9, 12));
  CHECK(timeline[b].released_by == late);
  CHECK(timeline[a].released_by == a);
}

TEST_CASE("A joint task starts when the last of its lanes reaches it, and holds them all") {
  // Lanes 0, 1, 2 are busy until 4, 9, 6: the collective runs 9-11 on all, and all go on at 11.
  TaskGraph graph;
  std::vector<LaneId> lanes;
  for (const int busy : {4, 9, 6}) {
    lanes.push_back(graph.add_lane(static_cast<int>(lanes.size()), LaneKind::data_comm));
    graph.add(lanes.back(), WorkKind::other, ps(busy));
  }
  const TaskId joint = graph.add_joint(lanes, WorkKind::reduce_gradients, ps(2));
  std::vector<TaskId> after;
  for (const LaneId lane : lanes) after.push_back(graph.add(lane, WorkKind::other, ps(1)));
  const Timeline timeline = play(graph);
  CHECK(runs(timeline, joint, 9, 11));
  for (const TaskId task : after) CHECK(runs(timeline, task, 11, 12));
  CHECK(graph.lanes(joint).size() == 3);
}

TEST_CASE("Durations are rounded to picoseconds as they are added") {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  CHECK(graph.duration(graph.add(lane, WorkKind::other, Seconds(1.4e-12))) == Picoseconds(1));
  CHECK(graph.duration(graph.add(lane, WorkKind::other, Seconds(1.6e-12))) == Picoseconds(2));
  CHECK(graph.duration(graph.add(lane, WorkKind::other, Seconds(1.0))) ==
        Picoseconds(1'000'000'000'000));
}

TEST_CASE("An empty graph takes no time") { CHECK(play(TaskGraph{}).makespan == SimTime{0}); }

TEST_CASE("Of simultaneous ends, the one scheduled last comes last and releases the dependent") {
  // Lane 0: x 0-1, y 1-2. Lane 1: z 0-2. z's end is scheduled at 0 and y's at 1, so at 2 the ends
  // come in the order z, y, whatever the order of adding.
  for (const bool z_first : {true, false}) {
    TaskGraph graph;
    const LaneId zero = graph.add_lane(0, LaneKind::compute);
    const LaneId one = graph.add_lane(1, LaneKind::compute);
    const LaneId two = graph.add_lane(2, LaneKind::compute);
    TaskId z;
    if (z_first) z = graph.add(one, WorkKind::other, ps(2));
    graph.add(zero, WorkKind::other, ps(1));
    const TaskId y = graph.add(zero, WorkKind::other, ps(1));
    if (!z_first) z = graph.add(one, WorkKind::other, ps(2));
    const TaskId last = graph.add(two, WorkKind::other, ps(1), {}, {y, z});
    CHECK(play(graph)[last].released_by == y);
  }
  // Scheduled at one instant: in the order of starting, here that of adding.
  TaskGraph graph;
  const TaskId a = graph.add(graph.add_lane(0, LaneKind::compute), WorkKind::other, ps(2));
  const TaskId b = graph.add(graph.add_lane(1, LaneKind::compute), WorkKind::other, ps(2));
  const LaneId lane = graph.add_lane(2, LaneKind::compute);
  const TaskId last = graph.add(lane, WorkKind::other, ps(0), {}, {b, a});
  CHECK(play(graph)[last].released_by == b);
}

TEST_CASE("Random graphs: every start is the longest path to it") {
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    const RandomGraph made = random_graph(random);
    const Timeline timeline = play(made.graph);
    const std::vector<std::int64_t> expected = longest_path_starts(made);
    std::int64_t makespan = 0;
    bool starts_agree = true;
    bool released_on_time = true;
    for (std::uint32_t t = 0; t < expected.size(); ++t) {
      const TaskTimes& task = timeline[TaskId{t}];
      const std::int64_t end = expected[t] + made.durations[t];
      starts_agree = starts_agree && task.start == SimTime{expected[t]} && task.end == SimTime{end};
      makespan = std::max(makespan, end);
      const auto& before = made.predecessors[t];
      const std::uint32_t by = task.released_by.index;
      released_on_time = released_on_time &&
                         (before.empty() ? by == t
                                         : timeline[task.released_by].end == task.start &&
                                               std::count(before.begin(), before.end(), by) > 0);
    }
    CHECK(starts_agree);
    CHECK(released_on_time);
    CHECK(timeline.makespan == SimTime{makespan});
    CHECK(play(made.graph) == timeline);
  }
}

TEST_CASE("A circle of tasks is an answer that names them") {
  // Lane 0: a, b. Lane 1: c, d. a waits for d and c for b, so a -> d -> c -> b -> a. e is behind b.
  // free runs.
  TaskGraph graph;
  const LaneId zero = graph.add_lane(0, LaneKind::compute);
  const LaneId one = graph.add_lane(1, LaneKind::compute);
  const LaneId two = graph.add_lane(2, LaneKind::compute);
  graph.add(two, WorkKind::other, ps(1));
  const TaskId a = graph.add(zero, WorkKind::other, ps(1));
  const TaskId b = graph.add(zero, WorkKind::other, ps(1));
  const TaskId c = graph.add(one, WorkKind::other, ps(1));
  const TaskId d = graph.add(one, WorkKind::other, ps(1));
  graph.add(two, WorkKind::other, ps(1), {}, {b});
  graph.add_dependency(d, a);
  graph.add_dependency(b, c);
  const RunOutcome outcome = run(graph);
  REQUIRE(std::holds_alternative<Deadlock>(outcome));
  const Deadlock& deadlock = std::get<Deadlock>(outcome);
  CHECK(deadlock.blocked == 5);
  std::vector<TaskId> cycle = deadlock.cycle;
  REQUIRE(cycle.size() == 4);
  std::rotate(cycle.begin(), std::find(cycle.begin(), cycle.end(), a), cycle.end());
  CHECK(cycle == std::vector<TaskId>{a, d, c, b});
}

TEST_CASE("A task that waits for itself is a circle of one") {
  TaskGraph graph;
  const TaskId a = graph.add(graph.add_lane(0, LaneKind::compute), WorkKind::other, ps(1));
  graph.add_dependency(a, a);
  const RunOutcome outcome = run(graph);
  REQUIRE(std::holds_alternative<Deadlock>(outcome));
  CHECK(std::get<Deadlock>(outcome).cycle == std::vector<TaskId>{a});
}

TEST_CASE("A step longer than the clock is an answer too") {
  constexpr double kDays = 86'400.0;
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  graph.add(lane, WorkKind::other, Seconds(60 * kDays));
  CHECK(std::holds_alternative<Timeline>(run(graph)));
  const TaskId second = graph.add(lane, WorkKind::other, Seconds(60 * kDays));
  CHECK(std::get<ClockOverflow>(run(graph)) == ClockOverflow{second});

  TaskGraph one;
  const TaskId endless =
      one.add(one.add_lane(0, LaneKind::compute), WorkKind::other, Seconds(1e300));
  CHECK(std::get<ClockOverflow>(run(one)) == ClockOverflow{endless});
}

TEST_CASE("Graphs that make no sense are our own bugs") {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  CHECK_THROWS_AS(graph.add_lane(0, LaneKind::compute), BrokenInvariant);
  CHECK_THROWS_AS(graph.add_lane(-1, LaneKind::host), BrokenInvariant);
  CHECK_THROWS_AS(graph.add(lane, WorkKind::other, Seconds(-1e-9)), BrokenInvariant);
  CHECK_THROWS_AS(graph.add(lane, WorkKind::other, Seconds(std::nan(""))), BrokenInvariant);
  CHECK_THROWS_AS(graph.add(lane, WorkKind::other, ps(1), {.stage = 70'000}), BrokenInvariant);
  CHECK_THROWS_AS(graph.add(LaneId{9}, WorkKind::other, ps(1)), BrokenInvariant);
  CHECK_THROWS_AS(graph.add_joint({}, WorkKind::other, ps(1)), BrokenInvariant);
  CHECK_THROWS_AS(graph.add_joint(std::vector{lane, lane}, WorkKind::other, ps(1)),
                  BrokenInvariant);
  CHECK_THROWS_AS(graph.add_dependency(TaskId{0}, TaskId{1'000}), BrokenInvariant);
}

TEST_CASE("What was added can be read back") {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(3, LaneKind::pipeline_comm);
  const TaskTag tag{.stage = 1, .chunk = 2, .microbatch = 65'535, .layer = 4};
  const TaskId task = graph.add(lane, WorkKind::pipeline_send, ps(9), tag);
  CHECK(graph.tag(task) == tag);
  CHECK(graph.work(task) == WorkKind::pipeline_send);
  CHECK(graph.lanes(task)[0] == lane);
  CHECK(graph.rank(lane) == 3);
  CHECK(graph.kind(lane) == LaneKind::pipeline_comm);
  CHECK(graph.rank_count() == 4);
  CHECK(name(graph.kind(lane)) == "pipeline_comm");
  CHECK(name(graph.work(task)) == "pipeline_send");
  CHECK(name(WorkKind::other) == "other");
  CHECK(name(LaneKind::host) == "host");
}
