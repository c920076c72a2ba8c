#include "planner/search/stages_together.hpp"

#include "tests/catch.hpp"

namespace shardwise {
namespace {

StageCosts one_chunk(double forward, double backward) {
  LayerSchedule layer;
  layer.time.forward.compute = Seconds(forward);
  layer.time.backward_input.compute = Seconds(backward);
  StageCosts stage;
  stage.chunks = {{layer}};
  stage.alike = {0};
  return stage;
}

// Two stages: 1 s forward and 2 s back; 3 s forward and 1 s back. A transfer takes half a second.
struct TwoStages {
  StepCosts costs;
  std::vector<KnownSlots::List> slots;
  std::vector<std::vector<ChunkInputs>> inputs;
  PipelineShape shape{2, 1, 2};

  explicit TwoStages(bool overlaps) {
    costs.stages = {one_chunk(1, 2), one_chunk(3, 1)};
    costs.alike = {0, 1};
    costs.overlaps_pipeline_comm = overlaps;
    KnownSlots known;
    for (int s = 0; s < 2; ++s)
      slots.push_back(known.of(*find_pipeline_schedule("1f1b"), shape, s));
    const Seconds sent(0.5), none(0);
    inputs = {{{0, none, overlaps ? sent : none, {none, overlaps ? none : sent}}},
              {{1, overlaps ? sent : none, none, {overlaps ? none : sent, none}}}};
  }
  std::vector<StageEnd> ends() const { return stages_together(slots, shape, costs, inputs); }
};

}  // namespace

// Forward 0 is done at 1, there at 1.5, done at 4.5; back at 5.5. Forward 1 is done at 2 on the
// first stage, so the second goes on to 8.5 and 9.5. The first stage goes back from 6 to 8, and
// from 10 to 12.
TEST_CASE("stages that wait for each other in turn take longer than each alone") {
  const TwoStages two(true);
  const std::vector<StageEnd> ends = two.ends();
  CHECK(ends[0].compute == Seconds(12));
  CHECK(ends[1].compute == Seconds(9.5));
  const auto alone = [&](std::size_t s, double input) {
    return stage_alone(*two.slots[s], two.costs.stages[s], two.costs, 2, Seconds(input), {{}},
                       false)
        .compute;
  };
  CHECK(alone(0, 0) == Seconds(6));
  CHECK(alone(1, 1.5) == Seconds(9.5));
}

// Arrivals take the compute lane: forward 0 from 1.5 to 4.5, back at 5.5, forward 1 received at 6
// and done at 9, back at 10. The first stage receives until 6, is done at 8, receives from 10 to
// 10.5 and is done at 12.5.
TEST_CASE("arrivals that nothing overlaps wait for their turn on compute") {
  const std::vector<StageEnd> ends = TwoStages(false).ends();
  CHECK(ends[0].compute == Seconds(12.5));
  CHECK(ends[1].compute == Seconds(10));
}

// What DataTraffic counts from: 1F1B, GPipe and interleaved pipelines.
TEST_CASE("where backward is whole, all forward passes come before the last microbatch's return") {
  int orders = 0;
  for (const PipelineSchedule& schedule : pipeline_schedules()) {
    if (schedule.splits_backward) continue;
    for (const int stages : {1, 2, 3, 4, 8})
      for (const int chunks : {1, 2, 3, 5})
        for (const int microbatches : {1, 2, 4, 6, 8, 16, 24}) {
          const PipelineShape shape{stages, chunks, microbatches};
          if (refusal(schedule, shape)) continue;
          for (int s = 0; s < stages; ++s, ++orders) {
            bool back = false, forward_after = false;
            for (const Slot& slot : schedule.order(shape, s)) {
              back = back || (slot.pass != Pass::forward && slot.microbatch == microbatches - 1);
              forward_after = forward_after || (back && slot.pass == Pass::forward);
            }
            INFO(schedule.name << " " << stages << " " << chunks << " " << microbatches);
            CHECK_FALSE(forward_after);
          }
        }
  }
  CHECK(orders > 100);
}

}  // namespace shardwise
