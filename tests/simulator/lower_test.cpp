#include "simulator/step/lower.hpp"

#include <variant>

#include "simulator/step/engine.hpp"
#include "simulator/step/timeline.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

// Stages of one layer each: forward f, backward b (half of it for the weights), nothing else.
StepCosts equal_stages(const ParallelPlan& plan, double f, double b) {
  StepCosts costs;
  costs.overlaps_pipeline_comm = true;
  costs.waits_for_all_stages = false;
  for (int s = 0; s < plan.pipeline; ++s) {
    StageCosts stage;
    for (int c = 0; c < plan.chunks; ++c) {
      LayerSchedule layer;
      layer.time.forward.compute = Seconds(f);
      layer.time.backward_input.compute = Seconds(b / 2);
      layer.time.backward_weight.compute = Seconds(b / 2);
      stage.chunks.push_back({layer});
    }
    costs.stages.push_back(stage);
    costs.send.push_back(Seconds(0));
  }
  return costs;
}

Timeline played_plan(const ParallelPlan& plan, const StepCosts& costs, bool unfold) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const LoweredStep step = lower(plan, schedule, costs, unfold);
  return std::get<Timeline>(run(step.graph));
}

std::int64_t picoseconds(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * 1e12));
}

}  // namespace

// arXiv 2104.04473, section 2.2.1: m microbatches through p equal stages take (m + p - 1)(f + b)
// under GPipe and 1F1B; one at a time they take m p (f + b).
TEST_CASE("pipelines of equal stages take the closed form", "[lower]") {
  const double f = 1e-3, b = 2e-3;
  for (const int p : {1, 2, 4, 7})
    for (const int m : {1, 2, 8, 13}) {
      ParallelPlan plan = plan_of(1, 1, p);
      plan.microbatches = m;
      for (const char* schedule : {"gpipe", "1f1b"}) {
        plan.schedule = schedule;
        INFO(schedule << " p " << p << " m " << m);
        CHECK(played_plan(plan, equal_stages(plan, f, b), false).makespan.picoseconds ==
              picoseconds((m + p - 1) * (f + b)));
      }
      plan.layer_split = true;
      CHECK(played_plan(plan, equal_stages(plan, f, b), false).makespan.picoseconds ==
            picoseconds(m * p * (f + b)));
    }
}

TEST_CASE("folded and unfolded steps agree to the picosecond", "[lower]") {
  for (const int dp : {1, 3})
    for (const int tp : {1, 2})
      for (const int pp : {1, 4}) {
        ParallelPlan plan = plan_of(dp, tp, pp);
        plan.microbatches = 5;
        StepCosts costs = equal_stages(plan, 1.1e-3, 2.3e-3);
        for (StageCosts& stage : costs.stages) {
          LayerSchedule& layer = stage.chunks.front().front();
          layer.time.forward.exposed[0] = Seconds(0.2e-3);
          layer.time.recompute.compute = Seconds(0.9e-3);
          layer.gather_forward = layer.gather_backward = Seconds(0.7e-3);
          layer.reduce = Seconds(1.7e-3);
          stage.optimizer = Seconds(0.4e-3);
        }
        for (Seconds& s : costs.send) s = Seconds(0.05e-3);
        costs.waits_for_all_stages = true;
        CHECK(played_plan(plan, costs, false).makespan == played_plan(plan, costs, true).makespan);
      }
}

// Without overlap a gradient reduction comes after the last backward; beside backward only the
// first layer's is left over. Two layers of f = 1, b = 2, reduction 1.5 each:
//   overlapped: 2 (f + b) + 1.5 = 7.5        at the end: 2 (f + b) + 3 = 9
TEST_CASE("gradient reductions hide behind backward", "[lower]") {
  ParallelPlan plan = plan_of(2);
  StepCosts costs = equal_stages(plan, 1, 2);
  std::vector<LayerSchedule>& layers = costs.stages.front().chunks.front();
  layers.push_back(layers.front());
  StepCosts at_end = costs;
  for (LayerSchedule& l : layers) l.reduce = Seconds(1.5);
  at_end.stages.front().reduce_at_end = Seconds(3);
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(7.5));
  CHECK(played_plan(plan, at_end, false).makespan.picoseconds == picoseconds(9));
}

// Where nothing overlaps them and every microbatch has them, what follows waits for each. Two
// layers of f = 1, b = 2, reduction 1.5 each, three microbatches:
//   in line: 3 x (2 (f + b) + 3) = 27      beside: 3 x 2 (f + b) + 1.5 = 19.5, for the reductions
//   of a microbatch, 3, hide behind the next one's passes
TEST_CASE("gradients that are reduced in line hold up what follows", "[lower]") {
  ParallelPlan plan = plan_of(2);
  plan.microbatches = 3;
  StepCosts costs = equal_stages(plan, 1, 2);
  costs.reduces_every_microbatch = true;
  std::vector<LayerSchedule>& layers = costs.stages.front().chunks.front();
  layers.push_back(layers.front());
  for (LayerSchedule& l : layers) l.reduce = Seconds(1.5);
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(19.5));
  costs.reduces_in_line = true;
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(27));
  CHECK(played_plan(plan, costs, true).makespan.picoseconds == picoseconds(27));
}

// Gathers run one layer ahead: with gather g = 1 and compute f = 2 for each of three layers only
// the first gather is exposed: 1 + 3 x 2 forward; backward regathers the same way, its first gather
// starting with the pass: 1 + 3 x 4.
TEST_CASE("parameter gathers are prefetched", "[lower]") {
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  StepCosts costs = equal_stages(plan, 2, 4);
  std::vector<LayerSchedule>& layers = costs.stages.front().chunks.front();
  layers.resize(3, layers.front());
  for (LayerSchedule& l : layers) l.gather_forward = l.gather_backward = Seconds(1);
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(1 + 6 + 1 + 12));
}

// Where recomputations gather weights themselves none is prefetched: gather g = 1, recomputation 2
// and backward 4 of two layers, reduction r = 3. Behind the forward passes (to 1 + 2 x 2 = 5) the
// last layer's weights are there at 6, again at 7, it has run again at 8, gone back at 12 and is
// reduced at 15. Then the first layer's: 16, and 17; run again 18, back 22, reduced 25. With
// both gathers in one that is prefetched, to 7 and 9: run again 9, back 13 and 19, reduced 22.
TEST_CASE("weights that a recomputation gathers wait for the layer behind", "[lower]") {
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  StepCosts costs = equal_stages(plan, 2, 4);
  std::vector<LayerSchedule>& layers = costs.stages.front().chunks.front();
  LayerSchedule& layer = layers.front();
  layer.gather_forward = layer.gather_backward = layer.gather_again = Seconds(1);
  layer.time.recompute.compute = Seconds(2);
  layer.reduce = Seconds(3);
  layers.resize(2, LayerSchedule(layer));
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(25));
  CHECK(played_plan(plan, costs, true).makespan.picoseconds == picoseconds(25));
  for (LayerSchedule& l : layers) {
    l.gather_backward = Seconds(2);
    l.gather_again.reset();
  }
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(22));
}

// A host that takes h = 3 to issue what the GPU runs in 1 sets the pace: 2 passes of 3, and the
// kernels of the weights' gradients, half of backward, which nothing is left to hide.
TEST_CASE("a slow host sets the pace of a step", "[lower]") {
  ParallelPlan plan = plan_of(1);
  StepCosts costs = equal_stages(plan, 1, 1);
  LayerSchedule& layer = costs.stages.front().chunks.front().front();
  layer.time.forward.host = Seconds(3);
  layer.time.backward_input.host = Seconds(3);
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(6.5));
}

// A pass through a layer: the CPU issues for 1, the GPU computes for 4, the CPU waits; then it
// issues for 3 what the GPU computes in 1. Each part takes the longer of the two: 4 + 3, and the
// next layer starts when the CPU is there. Without the wait the CPU is ahead all the time: 2 x 5.
TEST_CASE("a CPU that waits within a layer leads no more", "[lower]") {
  const ParallelPlan plan = plan_of(1);
  StepCosts costs = equal_stages(plan, 5, 0);
  std::vector<LayerSchedule>& layers = costs.stages.front().chunks.front();
  layers.front().time.forward.host = Seconds(4);
  layers.resize(2, layers.front());
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(10));
  for (LayerSchedule& l : layers)
    l.time.forward.waited = {IssuedWork{Seconds(4), {}, Seconds(1), Seconds(0)}};
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(14));
}

// 1 before it, then 3 of 4: the wait comes after 1 + 3 of the GPU's work and 2 + 0.5 of the CPU's,
// whose kernels want a lead of 2 - 1 = 1 where those of the second pass alone want none. After it
// come 1 and 0.5. A third pass with a wait of its own adds what it does before that to the rest.
TEST_CASE("passes in a row keep every wait", "[lower]") {
  PassTime sum{Seconds(1), {}, Seconds(2), Seconds(0), {}, Seconds(0)};
  const PassTime waits{Seconds(4),
                       {},
                       Seconds(1),
                       Seconds(0.25),
                       {IssuedWork{Seconds(3), {}, Seconds(0.5), Seconds(0)}},
                       Seconds(0)};
  sum += waits;
  REQUIRE(sum.waited.size() == 1);
  CHECK(sum.waited.front().compute.value == Approx(4));
  CHECK(sum.waited.front().host.value == Approx(2.5));
  CHECK(sum.waited.front().lead.value == Approx(1));
  CHECK(sum.lead.value == Approx(0.25));
  CHECK(sum.whole().compute.value == Approx(5));
  CHECK(sum.after_waits().compute.value == Approx(1));
  sum += waits;
  REQUIRE(sum.waited.size() == 2);
  CHECK(sum.waited.back().compute.value == Approx(1 + 3));
  CHECK(sum.waited.back().host.value == Approx(0.5 + 0.5));
}

// A layer whose CPU issues for 5 and whose GPU computes for 6, of which 1 is a kernel that takes 4
// to issue and 5 what takes 1: run without a gap, they begin 4 after the CPU does. A CPU that is
// ahead of all this anyhow changes nothing: 2 x 6. One that waits for the GPU before it begins
// makes 4 + 6 of every layer.
TEST_CASE("what the CPU issues slowly first hides behind nothing", "[lower]") {
  const ParallelPlan plan = plan_of(1);
  StepCosts costs = equal_stages(plan, 6, 0);
  std::vector<LayerSchedule>& layers = costs.stages.front().chunks.front();
  layers.front().time.forward.host = Seconds(5);
  layers.front().time.forward.lead = Seconds(4);
  layers.resize(2, layers.front());
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(12));
  for (LayerSchedule& l : layers) l.time.forward.waited = {IssuedWork{}};
  CHECK(played_plan(plan, costs, false).makespan.picoseconds == picoseconds(20));
}

// Two layers, f forward and b backward each, once for each of two microbatches: 4 (f + b). The
// second layer's gradients leave b before the end, the first's at the end or when the others are
// there. Nothing is reduced between.
TEST_CASE("gradients go to the host behind the backward that makes them", "[lower]") {
  const double f = 1e-3, b = 2e-3;
  ParallelPlan plan = plan_of(1);
  plan.microbatches = 2;
  const auto makespan = [&](std::optional<Seconds> each, std::optional<Seconds> at_end) {
    StepCosts costs = equal_stages(plan, f, b);
    StageCosts& stage = costs.stages.front();
    stage.chunks.front().front().copy_out = each;
    stage.chunks.front().push_back(stage.chunks.front().front());
    stage.copy_out_at_end = at_end;
    return played_plan(plan, costs, false).makespan.picoseconds;
  };
  const double passes = 4 * (f + b);
  CHECK(makespan(std::nullopt, std::nullopt) == picoseconds(passes));
  CHECK(makespan(Seconds(b / 2), std::nullopt) == picoseconds(passes + b / 2));
  CHECK(makespan(Seconds(3 * b), std::nullopt) == picoseconds(passes - b + 2 * 3 * b));
  CHECK(makespan(std::nullopt, Seconds(3 * b)) == picoseconds(passes + 3 * b));
}
