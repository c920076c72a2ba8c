#include "simulator/step/pass_span.hpp"

#include "simulator/step/engine.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/played_slots.hpp"

using namespace shardwise;

TEST_CASE("the passes of each stage come out in order, with their times") {
  // 1F1B, p = 2, m = 2, f = 3, b = 6. Stage 1: F0 3-6, B0 6-12, F1 12-15, B1 15-21.
  // Stage 0: F0 0-3, F1 3-6, B0 12-18 (after the other stage's), B1 21-27.
  const PlayedStep step = played_slots("1f1b", {2, 1, 2}, 3, 3, 3);
  struct Expected {
    WorkKind pass;
    int microbatch;
    std::int64_t start, end;
  };
  using enum WorkKind;
  const std::vector<std::vector<Expected>> expected{
      {{forward, 0, 0, 3}, {forward, 1, 3, 6}, {backward, 0, 12, 18}, {backward, 1, 21, 27}},
      {{forward, 0, 3, 6}, {backward, 0, 6, 12}, {forward, 1, 12, 15}, {backward, 1, 15, 21}}};
  REQUIRE(step.stages() == 2);
  for (int stage = 0; stage < 2; ++stage) {
    const auto spans = pass_spans(step, stage);
    const auto& want = expected[static_cast<std::size_t>(stage)];
    REQUIRE(spans.size() == want.size());
    for (std::size_t i = 0; i < spans.size(); ++i) {
      CHECK(spans[i].pass == want[i].pass);
      CHECK(spans[i].microbatch == want[i].microbatch);
      CHECK(spans[i].start().picoseconds == want[i].start);
      CHECK(spans[i].end().picoseconds == want[i].end);
    }
  }
}

TEST_CASE("a recomputation belongs to its backward pass, and tasks of no length to none") {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  const auto ps = [](int n) { return Seconds(n * 1e-12); };
  graph.add(lane, WorkKind::recompute, ps(2),
            {.stage = 0, .chunk = 0, .microbatch = 5, .layer = 1});
  graph.add(lane, WorkKind::backward, ps(4), {.stage = 0, .chunk = 0, .microbatch = 5, .layer = 1});
  graph.add(lane, WorkKind::forward, ps(0), {.stage = 0, .chunk = 0, .microbatch = 6, .layer = 0});
  graph.add(lane, WorkKind::backward, ps(4), {.stage = 0, .chunk = 0, .microbatch = 5, .layer = 0});
  graph.add(lane, WorkKind::optimizer, ps(1));
  const auto spans = pass_spans(played(std::move(graph)), 0);
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].pass == WorkKind::backward);
  CHECK(spans[0].pieces.size() == 3);
  CHECK(spans[0].end().picoseconds == 10);
  CHECK(spans[1].pass == WorkKind::optimizer);
}

TEST_CASE("a stage without a compute lane has no passes") {
  TaskGraph graph;
  graph.add_lane(0, LaneKind::loader);
  CHECK(pass_spans(played(std::move(graph)), 0).empty());
}
