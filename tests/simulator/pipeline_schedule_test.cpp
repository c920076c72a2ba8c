#include "simulator/pipeline_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "simulator/parallel_plan.hpp"
#include "simulator/step/engine.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/lower_slots.hpp"
#include "tests/simulator/played_graph.hpp"

using namespace shardwise;

namespace {

// Times of one chunk in picoseconds; integers, so that closed forms hold exactly.
struct Times {
  std::int64_t f = 1;
  std::int64_t i = 1;  // backward for inputs
  std::int64_t w = 1;  // backward for weights
  std::optional<std::int64_t> pair;
};

const PipelineSchedule& schedule(std::string_view name) {
  const PipelineSchedule* row = find_pipeline_schedule(name);
  REQUIRE(row != nullptr);
  return *row;
}

struct PlayedSlots {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> busy;    // by stage
  std::vector<std::int64_t> bubble;  // by stage, over the whole step
  std::vector<std::int64_t> span;    // by stage, from its first start to its last end
};

PlayedSlots play_slots(const PipelineSchedule& row, PipelineShape shape, Times times) {
  REQUIRE_FALSE(refusal(row, shape).has_value());
  TaskGraph graph;
  PassTimes seconds{ps(times.f), ps(times.i), ps(times.w), std::nullopt};
  if (times.pair) seconds.pair = ps(*times.pair);
  SlotLowering(row, shape).add_to(graph, seconds);
  const RunOutcome outcome = run(graph);
  REQUIRE(std::holds_alternative<Timeline>(outcome));
  const Timeline& timeline = std::get<Timeline>(outcome);
  PlayedSlots played;
  played.makespan = timeline.makespan.picoseconds;
  for (const RankSummary& summary : summarise_ranks(graph, timeline)) {
    played.busy.push_back(total(summary.busy).value);
    played.bubble.push_back(summary.bubble.value);
  }
  std::vector<std::int64_t> first(played.busy.size(), played.makespan);
  std::vector<std::int64_t> last(played.busy.size(), 0);
  for (std::uint32_t task = 0; task < graph.task_count(); ++task) {
    const auto stage = static_cast<std::size_t>(graph.tag(TaskId{task}).stage);
    first[stage] = std::min(first[stage], timeline[TaskId{task}].start.picoseconds);
    last[stage] = std::max(last[stage], timeline[TaskId{task}].end.picoseconds);
  }
  for (std::size_t s = 0; s < first.size(); ++s) played.span.push_back(last[s] - first[s]);
  return played;
}

int most_in_flight(const PipelineSchedule& row, PipelineShape shape, int stage) {
  return peak_in_flight(row.order(shape, stage));
}

std::string written(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    text += "FBIW"[static_cast<std::size_t>(slot.pass)] + std::to_string(slot.microbatch);
    if (slot.chunk > 0) text += std::string(static_cast<std::size_t>(slot.chunk), '\'');
    text += slot.paired_with_next ? '&' : ' ';
  }
  return text;
}

}  // namespace

TEST_CASE("what plans fall to by themselves are rows") {
  CHECK(schedule(usual_schedule).chunks_per_stage == 1);
  CHECK_FALSE(schedule(chunked_schedule).chunks_per_stage);
  ParallelPlan plan;
  CHECK(schedule(plan.schedule_row()).name == usual_schedule);
  plan.layer_split = true;
  CHECK(schedule(plan.schedule_row()).name == layer_split_schedule);
}

TEST_CASE("Orders as drawn in their papers") {
  // 2104.04473 figure 4, p = 4, m = 8, stages 2 and 4.
  CHECK(written(schedule("1f1b").order({4, 1, 8}, 1)) ==
        "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7 ");
  CHECK(written(schedule("1f1b").order({4, 1, 8}, 3)) ==
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 ");
  CHECK(written(schedule("gpipe").order({4, 1, 3}, 2)) == "F0 F1 F2 B0 B1 B2 ");
  // p = 2, v = 2, m = 4: rounds of 2; warm-up (2 - 1) 2 + 2 (1 - r) = 4 on stage 0, 2 on stage 1.
  CHECK(written(schedule("interleaved").order({2, 2, 4}, 0)) ==
        "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3 ");
  CHECK(written(schedule("interleaved").order({2, 2, 4}, 1)) ==
        "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3 ");
  // p = 2, m = 3: stage r delays W by r microbatches.
  CHECK(written(schedule("zb-h1").order({2, 1, 3}, 0)) == "F0 F1 I0 W0 F2 I1 W1 I2 W2 ");
  CHECK(written(schedule("zb-h1").order({2, 1, 3}, 1)) == "F0 I0 F1 I1 W0 F2 I2 W1 W2 ");
  CHECK(written(schedule("zb-v").order({1, 2, 2}, 0)) ==
        "F0 F0' I0' W0' F1 I0 W0 F1' I1' W1' I1 W1 ");
  // p = 2: h = 1, so stage 0 has steps 2, 4, 6 and 8 only, the first pair unpaired.
  CHECK(written(schedule("dualpipe").order({2, 2, 4}, 0)) == "F0 F2' F1 B2' F3'&B0 B3' I1 W1 ");
  CHECK(written(schedule("dualpipe").order({2, 2, 4}, 1)) == "F2' F0 F3' B0 F1&B2' B1 I3' W3' ");
  CHECK(written(schedule("dualpipe-v").order({1, 2, 2}, 0)) == "F0 F0' F1 B0' F1'&B0 B1' I1 W1 ");
}

TEST_CASE("GPipe and 1F1B take (m + p - 1)(f + b) with equal stages") {
  // The first forward reaches the last stage after (p - 1) f, its m forwards and backwards take
  // m (f + b), and the last backward comes back to stage 0 in (p - 1) b. So every stage idles for
  // (p - 1)(f + b): the bubble fraction is (p - 1) / (m + p - 1).
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 20; ++m) {
        const PlayedSlots played =
            play_slots(schedule(name), {p, 1, m}, {.f = 3, .i = 4, .w = 2, .pair = {}});
        CHECK(played.makespan == (m + p - 1) * (3 + 6));
        for (const std::int64_t bubble : played.bubble) CHECK(bubble == (p - 1) * (3 + 6));
      }
    }
  }
}

TEST_CASE("1F1B stage r holds min(m, p - r) microbatches, GPipe all of them") {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 12; ++m) {
      for (int r = 0; r < p; ++r) {
        CHECK(most_in_flight(schedule("1f1b"), {p, 1, m}, r) == std::min(m, p - r));
        CHECK(most_in_flight(schedule("gpipe"), {p, 1, m}, r) == m);
      }
    }
  }
}

TEST_CASE("Interleaving divides the bubble by v where m is a multiple of p") {
  // The ramp up and down passes single chunks: (p - 1)(f + b) in the times f and b of one chunk,
  // which are 1/v of a stage's. Stage 0 holds its warm-up of (v - 1) p + 2 (p - 1) chunks and one
  // more, capped by m v.
  for (int p = 1; p <= 6; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m = p; m <= 4 * p; m += p) {
        const PipelineShape shape{p, v, m};
        const PlayedSlots played =
            play_slots(schedule("interleaved"), shape, {.f = 2, .i = 3, .w = 2, .pair = {}});
        CHECK(played.makespan == m * v * (2 + 5) + (p - 1) * (2 + 5));
        for (int r = 0; r < p; ++r) {
          CHECK(most_in_flight(schedule("interleaved"), shape, r) ==
                std::min(m * v, (v - 1) * p + 2 * (p - 1 - r) + 1));
        }
      }
    }
  }
}

TEST_CASE("ZB-H1's bubble is (p - 1)(F + I - W), a third of 1F1B's with F = I = W") {
  // The last stage delays its W by p - 1 microbatches, which are left over at the end: (p - 1) W
  // of work where 1F1B would idle. Holds while W is no longer than F and I and m >= p.
  const std::vector<Times> cases = {{1, 1, 1, {}}, {5, 5, 3, {}}, {4, 6, 3, {}}, {6, 5, 0, {}}};
  for (const Times& t : cases) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = p; m <= 3 * p; ++m) {
        const PipelineShape shape{p, 1, m};
        const PlayedSlots played = play_slots(schedule("zb-h1"), shape, t);
        CHECK(played.makespan == m * (t.f + t.i + t.w) + (p - 1) * (t.f + t.i - t.w));
        const PlayedSlots plain = play_slots(schedule("1f1b"), shape, t);
        if (t.f == 1) CHECK(3 * played.bubble[0] == plain.bubble[0]);
        // 1F1B's memory: no stage holds more than 1F1B's first.
        for (int r = 0; r < p; ++r) CHECK(most_in_flight(schedule("zb-h1"), shape, r) <= p);
      }
    }
  }
}

TEST_CASE("ZB-V has no bubble with F = I = W, and every stage holds 2p chunks") {
  // No stage idles between its first and its last slot. Over the step, from 0 to the last end of
  // any stage, each waits for the p - 1 forwards of the ramp.
  for (int p = 1; p <= 8; ++p) {
    for (int m = std::max(2, 2 * p - 1); m <= 4 * p; ++m) {
      const PipelineShape shape{p, 2, m};
      const PlayedSlots played = play_slots(schedule("zb-v"), shape, {});
      CHECK(played.span == played.busy);
      CHECK(played.makespan == 6 * m + (p - 1));
      for (int r = 0; r < p; ++r)
        CHECK(most_in_flight(schedule("zb-v"), shape, r) == std::min(2 * p, 2 * m));
    }
  }
}

TEST_CASE("DualPipe's bubble is (h - 1)(F&B + B - 3W), and a stage holds 2h + 1 chunks") {
  // h = p / 2 for DualPipe and p for DualPipeV. The rule is that of the middle (the last) stage,
  // and of all with F&B = F + B and F = I = W.
  const std::vector<Times> cases = {{1, 1, 1, 3}, {10, 10, 8, 25}, {10, 10, 10, 20}};
  for (const Times& t : cases) {
    const std::int64_t backward = t.i + t.w;
    for (int h = 1; h <= 5; ++h) {
      for (int extra = 0; extra <= 6; extra += 2) {
        const std::int64_t bubble = (h - 1) * (*t.pair + backward - 3 * t.w);
        const PipelineShape two_ways{2 * h, 2, 4 * h + extra};
        const PlayedSlots dual = play_slots(schedule("dualpipe"), two_ways, t);
        CHECK(dual.bubble[static_cast<std::size_t>(h) - 1] == bubble);
        CHECK(dual.bubble[static_cast<std::size_t>(h)] == bubble);
        const PipelineShape folded{h, 2, 2 * h + extra};
        const PlayedSlots v = play_slots(schedule("dualpipe-v"), folded, t);
        CHECK(v.bubble[static_cast<std::size_t>(h) - 1] == bubble);
        for (int r = 0; r < h; ++r) {
          CHECK(most_in_flight(schedule("dualpipe"), two_ways, r) == 2 * h + 1);
          CHECK(most_in_flight(schedule("dualpipe-v"), folded, r) == 2 * h + 1);
        }
      }
    }
  }
}

namespace {

// Everything that the slots of one stage must satisfy by themselves. Enters its passes in `passed`,
// as (pass, microbatch, model chunk), a whole backward as its two halves.
bool stage_is_sound(const PipelineSchedule& row, PipelineShape shape, int stage,
                    std::multiset<std::vector<int>>& passed) {
  std::set<std::vector<int>> done;
  int in_flight = 0;
  const std::vector<Slot> slots = row.order(shape, stage);
  for (std::size_t at = 0; at < slots.size(); ++at) {
    const Slot& slot = slots[at];
    if (slot.microbatch < 0 || slot.microbatch >= shape.microbatches) return false;
    if (slot.chunk < 0 || slot.chunk >= shape.chunks_per_stage) return false;
    const bool split = slot.pass == Pass::backward_input || slot.pass == Pass::backward_weight;
    if (split && !row.splits_backward) return false;
    if (slot.paired_with_next) {
      if (slot.pass != Pass::forward || at + 1 == slots.size()) return false;
      if (slots[at + 1].pass != Pass::backward || slots[at + 1].chunk == slot.chunk) return false;
    }
    const int model_chunk = row.model_chunk(shape, stage, slot.chunk);
    const auto key = [&](int pass) { return std::vector<int>{pass, slot.microbatch, model_chunk}; };
    const bool forward = slot.pass == Pass::forward;
    const bool weight = slot.pass == Pass::backward_weight;
    if (forward) ++in_flight;
    if (slot.pass == Pass::backward || weight) --in_flight;
    // Forward first, then the input half, then the weight half.
    if (!forward && done.count(key(weight ? 1 : 0)) == 0) return false;
    for (const int pass : {0, 1, 2}) {
      const bool does = forward  ? pass == 0
                        : weight ? pass == 2
                                 : pass == 1 || (pass == 2 && !split);
      if (!does) continue;
      done.insert(key(pass));
      passed.insert(key(pass));
    }
  }
  return in_flight == 0;
}

bool passes_once(const PipelineSchedule& row, PipelineShape shape) {
  std::multiset<std::vector<int>> passed;
  for (int stage = 0; stage < shape.stages; ++stage) {
    if (!stage_is_sound(row, shape, stage, passed)) return false;
  }
  const std::set<std::vector<int>> distinct(passed.begin(), passed.end());
  const int expected = 3 * shape.microbatches * row.model_chunks(shape);
  return static_cast<int>(passed.size()) == expected &&
         static_cast<int>(distinct.size()) == expected;
}

bool runs_to_the_end(const PipelineSchedule& row, PipelineShape shape, Times times) {
  TaskGraph graph;
  SlotLowering(row, shape).add_to(graph, {ps(times.f), ps(times.i), ps(times.w), std::nullopt});
  return std::holds_alternative<Timeline>(run(graph));
}

}  // namespace

TEST_CASE("Random schedules and shapes: every microbatch passes every chunk once, nothing locks") {
  std::mt19937 random(3);
  const auto upto = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  int runs = 0;
  std::vector<int> runs_of(pipeline_schedules().size(), 0);
  while (runs < 10'000) {
    const std::size_t index = random() % pipeline_schedules().size();
    const PipelineSchedule& row = pipeline_schedules()[index];
    const PipelineShape shape{upto(8), upto(3), upto(24)};
    if (refusal(row, shape)) continue;
    ++runs;
    ++runs_of[index];
    const bool sound =
        passes_once(row, shape) && runs_to_the_end(row, shape, {upto(9), upto(9), upto(9), {}});
    INFO(row.name << " p=" << shape.stages << " v=" << shape.chunks_per_stage
                  << " m=" << shape.microbatches);
    REQUIRE(sound);
  }
  for (const int of : runs_of) CHECK(of > 200);
}

TEST_CASE("The stages hold each model chunk as often as the row says") {
  for (const PipelineSchedule& row : pipeline_schedules()) {
    const PipelineShape shape{4, refusal(row, {4, 2, 8}) ? 1 : 2, 8};
    REQUIRE_FALSE(refusal(row, shape).has_value());
    std::vector<int> held(static_cast<std::size_t>(row.model_chunks(shape)), 0);
    for (int stage = 0; stage < shape.stages; ++stage) {
      for (int chunk = 0; chunk < shape.chunks_per_stage; ++chunk) {
        ++held.at(static_cast<std::size_t>(row.model_chunk(shape, stage, chunk)));
      }
    }
    for (const int copies : held) CHECK(copies == row.weight_copies);
  }
}

TEST_CASE("A chunk begins and ends with the microbatches that are said to be its own") {
  for (const PipelineSchedule& row : pipeline_schedules()) {
    const PipelineShape shape{4, refusal(row, {4, 2, 8}) ? 1 : 2, 8};
    for (int stage = 0; stage < shape.stages; ++stage)
      for (int chunk = 0; chunk < shape.chunks_per_stage; ++chunk) {
        std::vector<int> run;
        for (const Slot& slot : row.order(shape, stage))
          if (slot.chunk == chunk && slot.pass == Pass::forward) run.push_back(slot.microbatch);
        const MicrobatchRange own = microbatches_of(row, chunk, shape.microbatches);
        INFO(row.name);
        CHECK(*std::min_element(run.begin(), run.end()) == own.first);
        CHECK(*std::max_element(run.begin(), run.end()) == own.last);
      }
  }
}

TEST_CASE("Rows are found by name, and refuse shapes that they cannot run with a reason") {
  std::set<std::string_view> names;
  for (const PipelineSchedule& row : pipeline_schedules()) {
    CHECK(names.insert(row.name).second);
    CHECK(find_pipeline_schedule(row.name) == &row);
    CHECK(refusal(row, {0, 1, 1}) == "there must be at least 1 stage");
    CHECK(refusal(row, {1, 0, 1}) == "there must be at least 1 chunk per stage");
    CHECK(refusal(row, {1, 1, -3}) == "there must be at least 1 microbatch");
  }
  CHECK(find_pipeline_schedule("1F1B") == nullptr);
  CHECK(refusal(schedule("1f1b"), {4, 2, 8}) ==
        "1f1b runs 1 chunk per stage, not 2: say vpp=1, or schedule=interleaved with vpp=2");
  CHECK(refusal(schedule("zb-v"), {4, 1, 8}) == "zb-v runs 2 chunks per stage, not 1: say vpp=2");
  CHECK(refusal(schedule("interleaved"), {4, 1, 8}) ==
        "interleaved runs 2 chunks per stage or more, not 1: say vpp=2, or schedule=1f1b");
  CHECK(refusal(schedule("interleaved"), {4, 2, 9}) ==
        "interleaved does not cut 9 microbatches (ga) into 2 equal rounds; a multiple of the 4 "
        "stages does");
  CHECK(refusal(schedule("dualpipe"), {3, 2, 8}) == "dualpipe needs an even number of stages (pp)");
  CHECK(refusal(schedule("dualpipe"), {4, 2, 9}) ==
        "dualpipe needs an even number of microbatches (ga)");
  CHECK(refusal(schedule("dualpipe"), {4, 2, 6}) ==
        "dualpipe needs at least 2 microbatches per stage, 8, not 6 (ga)");
  CHECK_FALSE(refusal(schedule("interleaved"), {4, 2, 10}).has_value());
}
