#include "simulator/step/timeline.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include "simulator/step/engine.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/played_graph.hpp"
#include "tests/simulator/random_graph.hpp"

using namespace shardwise;

namespace {

Picoseconds account(const RankSummary& summary) {
  return total(summary.busy) + total(summary.exposed) + summary.bubble;
}

Picoseconds spent_on(const TimePerWork& times, WorkKind kind) {
  return times[static_cast<std::size_t>(kind)];
}

// Whether the next task of an idle compute lane waits for something that the host's lanes have no
// part in.
bool waits_for_more_than_a_host(const RandomGraph& made, const Timeline& timeline,
                                const std::vector<std::uint32_t>& compute, std::int64_t now) {
  for (const std::uint32_t task : compute) {
    if (timeline[TaskId{task}].start.picoseconds <= now) continue;
    for (const std::uint32_t before : made.predecessors[task]) {
      const LaneId lane = made.graph.lanes(TaskId{before}).front();
      if (made.graph.kind(lane) == LaneKind::host) continue;
      if (timeline[TaskId{before}].end.picoseconds > now) return true;
    }
    return false;
  }
  return false;
}

// The account by its definition, one picosecond after the other.
RankSummary account_by_the_instant(const RandomGraph& made, const Timeline& timeline, int rank) {
  RankSummary summary;
  for (std::int64_t now = 0; now < timeline.makespan.picoseconds; ++now) {
    std::optional<LaneKind> blamed;
    WorkKind work{};
    bool ahead = false;  // the host, of what the compute lane waits for
    for (std::uint32_t lane = 0; lane < made.tasks_of_lane.size(); ++lane) {
      const LaneKind kind = made.graph.kind(LaneId{lane});
      if (made.graph.rank(LaneId{lane}) == rank && kind == LaneKind::compute)
        ahead = waits_for_more_than_a_host(made, timeline, made.tasks_of_lane[lane], now);
      if (made.graph.rank(LaneId{lane}) != rank || (blamed && *blamed <= kind)) continue;
      for (const std::uint32_t task : made.tasks_of_lane[lane]) {
        const TaskTimes& times = timeline[TaskId{task}];
        if (times.start.picoseconds > now || times.end.picoseconds <= now) continue;
        blamed = kind;
        work = made.graph.work(TaskId{task});
      }
    }
    if (!blamed || (*blamed == LaneKind::host && ahead)) {
      summary.bubble += Picoseconds(1);
    } else {
      auto& lines = *blamed == LaneKind::compute ? summary.busy : summary.exposed;
      lines[static_cast<std::size_t>(work)] += Picoseconds(1);
    }
  }
  return summary;
}

}  // namespace

// The backward pass waits for what comes from rank 1 until 12 and for the host until 14:
//             0    2    4    6    8   10   12   14   16
// compute     ffffffffff                        bbbbbb
// transfer                              tttttt
// host        hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh
// of rank 1:  oooooooooooooooooooooooooo
// From 4 to 10 rank 1 is waited for, though the host is busy; from 12 to 14 the host is.
TEST_CASE("the host is not blamed while something else is waited for") {
  TaskGraph graph;
  const LaneId host = graph.add_lane(0, LaneKind::host);
  const LaneId transfers = graph.add_lane(0, LaneKind::pipeline_comm);
  const LaneId compute = graph.add_lane(0, LaneKind::compute);
  const LaneId other = graph.add_lane(1, LaneKind::compute);
  const TaskId sent = graph.add(other, WorkKind::other, ps(10));
  const TaskId arrived = graph.add(transfers, WorkKind::pipeline_send, ps(2), {}, {sent});
  const TaskId issued = graph.add(host, WorkKind::host, ps(14));
  graph.add(host, WorkKind::host, ps(2));
  graph.add(compute, WorkKind::forward, ps(4));
  graph.add(compute, WorkKind::backward, ps(2), {}, {arrived, issued});

  const RankSummary rank = summarise_ranks(graph, play(graph)).front();
  CHECK(rank.bubble == Picoseconds(6));
  CHECK(spent_on(rank.exposed, WorkKind::pipeline_send) == Picoseconds(2));
  CHECK(spent_on(rank.exposed, WorkKind::host) == Picoseconds(2));
  CHECK(account(rank) == Picoseconds(16));
}

TEST_CASE("Idle time is blamed on what the rank runs meanwhile, communication before the host") {
  //            0    2    4    6    8   10   12
  // compute    ffffffffff          bbbbbbbbbb      forward 0-4, backward 8-12 (after the gather)
  // gather        gggggggggggggggg                 gather 2-8: 2-4 hidden, 4-8 exposed
  // host       hhhhhhhhhhhhhhhhhhhhhhhhhhhh    hh   host 0-11, 11-13, 13-14
  // compute of rank 1: oooooooooooooooooooooooooooo  other 0-20
  TaskGraph graph;
  const LaneId host = graph.add_lane(0, LaneKind::host);
  const LaneId gather = graph.add_lane(0, LaneKind::data_comm);
  const LaneId compute = graph.add_lane(0, LaneKind::compute);
  const LaneId other = graph.add_lane(1, LaneKind::compute);
  graph.add(gather, WorkKind::other, ps(2));
  graph.add(compute, WorkKind::forward, ps(4));
  const TaskId weights = graph.add(gather, WorkKind::gather_parameters, ps(6));
  graph.add(compute, WorkKind::backward, ps(4), {}, {weights});
  graph.add(host, WorkKind::host, ps(11));
  graph.add(host, WorkKind::host, ps(3));
  graph.add(other, WorkKind::other, ps(20));

  // Rank 0: busy 4 + 4; 4-8 gather; 12-14 host; 14-20 bubble. Rank 1 is busy throughout.
  const auto ranks = summarise_ranks(graph, play(graph));
  REQUIRE(ranks.size() == 2);
  CHECK(spent_on(ranks[0].busy, WorkKind::forward) == Picoseconds(4));
  CHECK(spent_on(ranks[0].busy, WorkKind::backward) == Picoseconds(4));
  CHECK(spent_on(ranks[0].exposed, WorkKind::gather_parameters) == Picoseconds(4));
  CHECK(spent_on(ranks[0].exposed, WorkKind::host) == Picoseconds(2));
  CHECK(spent_on(ranks[0].exposed, WorkKind::other) == Picoseconds(0));
  CHECK(ranks[0].bubble == Picoseconds(6));
  CHECK(account(ranks[0]) == Picoseconds(20));
  CHECK(spent_on(ranks[1].busy, WorkKind::other) == Picoseconds(20));
  CHECK(account(ranks[1]) == Picoseconds(20));
}

TEST_CASE("A rank without a compute lane, and a rank number that is not used, only idle") {
  TaskGraph graph;
  const LaneId loader = graph.add_lane(2, LaneKind::loader);
  graph.add(loader, WorkKind::loader, ps(5));
  const auto ranks = summarise_ranks(graph, play(graph));
  REQUIRE(ranks.size() == 3);
  CHECK(ranks[0].bubble == Picoseconds(5));
  CHECK(spent_on(ranks[2].exposed, WorkKind::loader) == Picoseconds(5));
}

TEST_CASE("Random graphs: each rank's account is that of its instants, and balances") {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const RandomGraph made = random_graph(random);
    const Timeline timeline = play(made.graph);
    const auto ranks = summarise_ranks(made.graph, timeline);
    REQUIRE(ranks.size() == static_cast<std::size_t>(made.ranks));
    for (int rank = 0; rank < made.ranks; ++rank) {
      const RankSummary& summary = ranks[static_cast<std::size_t>(rank)];
      CHECK(account(summary) == Picoseconds(timeline.makespan.picoseconds));
      CHECK(summary == account_by_the_instant(made, timeline, rank));
    }
  }
}

TEST_CASE("The critical path is what each task on it waited for") {
  // compute: a 0-5, c 9-12 (after the gather 3-9, which comes after x 0-3 on its lane).
  TaskGraph graph;
  const LaneId compute = graph.add_lane(0, LaneKind::compute);
  const LaneId gather = graph.add_lane(0, LaneKind::data_comm);
  graph.add(compute, WorkKind::forward, ps(5));
  const TaskId x = graph.add(gather, WorkKind::gather_parameters, ps(3));
  const TaskId y = graph.add(gather, WorkKind::gather_parameters, ps(6));
  const TaskId c = graph.add(compute, WorkKind::forward, ps(3), {}, {y});
  const auto path = critical_path(graph, play(graph));
  CHECK(path == std::vector<TaskId>{x, y, c});
}

TEST_CASE("Random graphs: the durations along the critical path add up to the makespan") {
  std::mt19937 random(23);
  for (int i = 0; i < 300; ++i) {
    const RandomGraph made = random_graph(random);
    const Timeline timeline = play(made.graph);
    const auto path = critical_path(made.graph, timeline);
    CHECK(path.empty() == made.durations.empty());
    SimTime at;
    bool gapless = true;
    for (const TaskId task : path) {
      gapless = gapless && timeline[task].start == at;
      at = timeline[task].end;
    }
    CHECK(gapless);
    CHECK(at == timeline.makespan);
  }
}

TEST_CASE("An empty graph has no path and no ranks") {
  const TaskGraph graph;
  CHECK(critical_path(graph, play(graph)).empty());
  CHECK(summarise_ranks(graph, play(graph)).empty());
}
