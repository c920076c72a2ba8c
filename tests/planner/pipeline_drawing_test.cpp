#include "planner/report/pipeline_drawing.hpp"

#include <algorithm>
#include <sstream>

#include "planner/report/table.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/played_slots.hpp"

using namespace shardwise;

namespace {

std::vector<std::string> lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

// The rows of the whole step, without their labels ("  0 |") and what follows them.
std::vector<std::string> whole_drawing(const PlayedStep& step, int columns) {
  constexpr int label = 5;
  std::vector<std::string> rows;
  for (const std::string& line : lines(pipeline_drawing(step, {columns + label, false}))) {
    const bool is_row = line.size() > label && line[label - 1] == '|';
    if (is_row) rows.push_back(line.substr(label));
    if (!is_row && !rows.empty()) break;
  }
  return rows;
}

}  // namespace

TEST_CASE("1F1B is drawn to scale, with numbers, and its bubble") {
  // p = 2, m = 2, f = 3, b = 6: 27 ps, so a column per picosecond (times: pass_span_test).
  const PlayedStep step = played_slots("1f1b", {2, 1, 2}, 3, 3, 3);
  CHECK(whole_drawing(step, 27) ==
        std::vector<std::string>{"F0-F1-......B0====...B1====", "...F0-B0====F1-B1====......"});
}

TEST_CASE("the second chunk is marked, and weight halves have their own look") {
  // ZB-V, p = 1, m = 2, all passes 3 ps: F0 F0' I0' W0' F1 I0 W0 F1' I1' W1' I1 W1 (its order is in
  // pipeline_schedule_test). SlotLowering calls both halves backward, so they look alike; a number
  // with its mark takes 3 columns with the letter.
  const PlayedStep step = played_slots("zb-v", {1, 2, 2}, 3, 3, 3);
  CHECK(whole_drawing(step, 36) ==
        std::vector<std::string>{"F0-F0'B0'===F1-B0====F1'B1'===B1===="});
  TaskGraph graph;
  const LaneId lane = graph.add_lane(0, LaneKind::compute);
  const auto ps = [](int n) { return Seconds(n * 1e-12); };
  graph.add(lane, WorkKind::recompute, ps(4),
            {.stage = 0, .chunk = 0, .microbatch = 1, .layer = 0});
  graph.add(lane, WorkKind::backward, ps(4), {.stage = 0, .chunk = 0, .microbatch = 1, .layer = 0});
  graph.add(lane, WorkKind::backward_weight, ps(4),
            {.stage = 0, .chunk = 0, .microbatch = 1, .layer = 0});
  graph.add(lane, WorkKind::optimizer, ps(4));
  CHECK(whole_drawing(played(std::move(graph)), 16) ==
        std::vector<std::string>{"R1~~B1==W1++Oooo"});
}

TEST_CASE("a column shows what took most of it; passes too short to see leave no gap") {
  // GPipe on one stage, m = 8, f = b = 1: 16 ps in 8 columns of two equal passes each: the first
  // stays, as the second took no more.
  const PlayedStep step = played_slots("gpipe", {1, 1, 8}, 1, 1, 0);
  CHECK(whole_drawing(step, 8) == std::vector<std::string>{"FFFFBBBB"});
  // 100 microbatches in 20 columns: 200 ps, no number fits, nothing idles.
  const auto rows = whole_drawing(played_slots("gpipe", {1, 1, 100}, 1, 1, 0), 20);
  CHECK(rows == std::vector<std::string>{"FFFFFFFFFFBBBBBBBBBB"});
}

TEST_CASE("waiting for a collective is told from the bubble") {
  // compute 0-2, all-reduce 2-6, compute 6-8; rank 1 idles until 8 and is done at 10.
  TaskGraph graph;
  const auto ps = [](int n) { return Seconds(n * 1e-12); };
  const LaneId compute = graph.add_lane(0, LaneKind::compute);
  const LaneId reduce = graph.add_lane(0, LaneKind::tensor_comm);
  const LaneId other = graph.add_lane(1, LaneKind::compute);
  const TaskId first = graph.add(compute, WorkKind::forward, ps(2));
  const TaskId sum = graph.add(reduce, WorkKind::tensor_comm, ps(4), {}, {first});
  const TaskId next = graph.add(compute, WorkKind::optimizer, ps(2), {}, {sum});
  graph.add(other, WorkKind::forward, ps(2), {.stage = 1, .chunk = 0, .microbatch = 0, .layer = 0},
            {next});
  CHECK(whole_drawing(played(std::move(graph)), 10) ==
        std::vector<std::string>{"F0::::Oo..", "........F0"});
}

TEST_CASE("drawings keep to the width of the terminal and are plain unless colour is wanted") {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    const PlayedStep step = played_slots(schedule, {4, 1, 32}, 10, 12, 9);
    for (const int width : {40, 80, 133}) {
      const std::string plain = pipeline_drawing(step, {width, false});
      CHECK(plain.find('\x1b') == std::string::npos);
      bool fits = true;
      for (const std::string& line : lines(plain))
        if (line.find('|') != std::string::npos)
          fits = fits && static_cast<int>(shown_width(line)) <= width;
      CHECK(fits);
      // Without its colour codes the coloured drawing is the plain one.
      const std::string coloured = pipeline_drawing(step, {width, true});
      std::string stripped;
      for (std::size_t i = 0; i < coloured.size(); ++i) {
        if (coloured[i] == '\x1b') {
          i = coloured.find('m', i);
          continue;
        }
        stripped += coloured[i];
      }
      CHECK(coloured != plain);
      CHECK(stripped == plain);
    }
  }
}

TEST_CASE("passes too narrow to read are drawn again, larger, at both ends") {
  // 32 microbatches in 76 columns: about 2 columns per microbatch.
  const std::string narrow =
      pipeline_drawing(played_slots("1f1b", {4, 1, 32}, 10, 12, 9), {80, false});
  CHECK(narrow.find("its beginning") != std::string::npos);
  CHECK(narrow.find("B31") != std::string::npos);  // the last pass of stage 0, in "its end"
  const std::string wide = pipeline_drawing(played_slots("1f1b", {2, 1, 2}, 3, 3, 3), {80, false});
  CHECK(wide.find("its beginning") == std::string::npos);
}
