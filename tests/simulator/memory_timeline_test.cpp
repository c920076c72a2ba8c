#include "simulator/step/memory_timeline.hpp"

#include "tests/catch.hpp"
#include "tests/simulator/played_slots.hpp"

using namespace shardwise;

namespace {

Seconds ps_of(int n) { return Seconds(n * 1e-12); }
MemoryMoment moment(WorkKind pass, int layer, int most, int after) {
  return {pass, 0, 0, layer, Bytes(most), Bytes(after), Bytes(100)};
}
MemorySample sample_at(std::int64_t at, int allocated) {
  return {{at}, Bytes(allocated), Bytes(100)};
}

}  // namespace

TEST_CASE("layers that one task runs through share its time equally") {
  // Forward 0-4 through layers 0..3 (1 ps each), backward 4-12 from layer 3 down (2 ps each).
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  graph.add(lane, WorkKind::forward, ps_of(4),
            {.stage = 0, .chunk = 0, .microbatch = 0, .layer = 3});
  graph.add(lane, WorkKind::backward, ps_of(8),
            {.stage = 0, .chunk = 0, .microbatch = 0, .layer = 0});
  const PlayedStep step = played(std::move(graph));
  using enum WorkKind;
  // Layer i of forward: at most 10 i + 15 within, 10 (i + 1) kept; backward gives 10 back each.
  const auto timeline = memory_timeline(
      step, 0,
      {moment(forward, 0, 15, 10), moment(forward, 1, 25, 20), moment(forward, 2, 35, 30),
       moment(forward, 3, 45, 40), moment(backward, 3, 60, 30), moment(backward, 2, 50, 20),
       moment(backward, 1, 40, 10), moment(backward, 0, 30, 0)});
  // Where one layer ends and the next begins, the higher of the two counts.
  CHECK(timeline == MemoryTimeline{sample_at(0, 15), sample_at(1, 25), sample_at(2, 35),
                                   sample_at(3, 45), sample_at(4, 60), sample_at(6, 50),
                                   sample_at(8, 40), sample_at(10, 30), sample_at(12, 0)});
}

TEST_CASE(
    "pieces of a pass date the layers that each runs through; a re-run is part of its layer") {
  // Forward in two pieces: layer 0 in 0-2, then waits for a gather until 5, layer 1 in 5-8.
  // Backward: layer 1 re-run 8-9 and 9-12, layer 0 in 12-13.
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  const LaneId gather = graph.add_lane(0, LaneKind::data_comm);
  const auto tag = [](int layer) {
    return TaskTag{.stage = 0, .chunk = 0, .microbatch = 0, .layer = layer};
  };
  const TaskId weights = graph.add(gather, WorkKind::gather_parameters, ps_of(5));
  graph.add(lane, WorkKind::forward, ps_of(2), tag(0));
  graph.add(lane, WorkKind::forward, ps_of(3), tag(1), {weights});
  graph.add(lane, WorkKind::recompute, ps_of(1), tag(1));
  graph.add(lane, WorkKind::backward, ps_of(3), tag(1));
  graph.add(lane, WorkKind::backward, ps_of(1), tag(0));
  graph.add(lane, WorkKind::optimizer, ps_of(2));
  using enum WorkKind;
  const auto timeline = memory_timeline(
      played(std::move(graph)), 0,
      {moment(forward, 0, 12, 10), moment(forward, 1, 25, 20), moment(backward, 1, 60, 30),
       moment(backward, 0, 35, 5), moment(optimizer, 0, 50, 4)});
  CHECK(timeline == MemoryTimeline{sample_at(0, 12), sample_at(2, 10), sample_at(5, 25),
                                   sample_at(8, 60), sample_at(12, 35), sample_at(13, 50),
                                   sample_at(15, 4)});
}

TEST_CASE("a step in equal parts keeps the most of each") {
  const MemoryTimeline timeline{sample_at(0, 5), sample_at(3, 9), sample_at(4, 2),
                                sample_at(11, 7)};
  // Parts of 5: [0,5) has 9; [5,10) is what was left, 2; [10,15) has 7; [15,20) goes on with 7.
  CHECK(evenly(timeline, {20}, 4) ==
        MemoryTimeline{sample_at(0, 9), sample_at(5, 2), sample_at(10, 7), sample_at(15, 7)});
  CHECK(thinned(timeline, {20}, 4) == timeline);
  CHECK(thinned(timeline, {20}, 2) == MemoryTimeline{sample_at(0, 9), sample_at(10, 7)});
  CHECK(evenly({}, {20}, 4).empty());
}
