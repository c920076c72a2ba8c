#include "simulator/variation.hpp"

#include <cmath>
#include <variant>

#include "simulator/gradient_compression.hpp"
#include "simulator/step/engine.hpp"
#include "simulator/step/lower.hpp"
#include "simulator/step/timeline.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

StepCosts one_stage(double forward, double backward) {
  StepCosts costs;
  costs.waits_for_all_stages = false;
  LayerSchedule layer;
  layer.time.forward.compute = Seconds(forward);
  layer.time.backward_input.compute = Seconds(backward);
  layer.reduce = Seconds(0.5);
  costs.stages.resize(1);
  costs.stages.front().chunks.push_back({layer});
  costs.send.push_back(Seconds(0));
  return costs;
}

Timeline played_varied(const ParallelPlan& plan, const StepCosts& costs, const Variation* variation,
                       bool unfold = true) {
  const LoweredStep step =
      lower(plan, *find_pipeline_schedule(plan.schedule_row()), costs, unfold, nullptr, variation);
  return std::get<Timeline>(run(step.graph));
}

std::int64_t picoseconds_of(double seconds) { return std::llround(seconds * 1e12); }

}  // namespace

// Uniform in 1 +- sqrt(3) j: mean 1, standard deviation j; over 40,000 draws the mean is known to
// j / 200 and the deviation to about j / 250.
TEST_CASE("jitter has the mean and the deviation that it says", "[variation]") {
  const Variation v{.jitter = 0.2, .seed = 7};
  double sum = 0, squares = 0;
  constexpr int ranks = 40, draws = 1000;
  for (int rank = 0; rank < ranks; ++rank)
    for (std::uint64_t draw = 0; draw < draws; ++draw) {
      const double f = v.factor(rank, draw, ranks);
      sum += f;
      squares += (f - 1) * (f - 1);
    }
  CHECK(sum / (ranks * draws) == Approx(1).margin(0.004));
  CHECK(std::sqrt(squares / (ranks * draws)) == Approx(0.2).margin(0.004));
}

TEST_CASE("the same seed gives the same step, another seed another", "[variation]") {
  ParallelPlan plan = plan_of(4);
  plan.microbatches = 3;
  const StepCosts costs = one_stage(1, 2);
  const Variation seven{.jitter = 0.1, .seed = 7}, eight{.jitter = 0.1, .seed = 8};
  CHECK(played_varied(plan, costs, &seven) == played_varied(plan, costs, &seven));
  CHECK_FALSE(played_varied(plan, costs, &seven).makespan ==
              played_varied(plan, costs, &eight).makespan);
}

// m (f + b) and the reduction; with a straggler of s = 1.5 all ranks wait for it: s m (f + b).
TEST_CASE("a straggler holds up every rank", "[variation]") {
  ParallelPlan plan = plan_of(8);
  plan.microbatches = 2;
  const StepCosts costs = one_stage(1, 2);
  const Variation slow{.straggler = 1.5, .seed = 3};
  CHECK(played_varied(plan, costs, nullptr).makespan.picoseconds == picoseconds_of(6.5));
  CHECK(played_varied(plan, costs, &slow).makespan.picoseconds == picoseconds_of(9.5));
  CHECK(slow.slow_rank(8) >= 0);
  CHECK(slow.slow_rank(8) < 8);
}

// Three ranks, the first twice as fast. Twelve microbatches of 2 s on a slow one: evenly 4 each,
// 8 s; by speed 6, 3, 3, so 6 s everywhere.
TEST_CASE("ranks of different pace run different numbers of microbatches", "[variation]") {
  ParallelPlan plan = plan_of(3);
  plan.microbatches = 4;
  StepCosts costs = one_stage(0.5, 1.5);
  costs.stages.front().paces = {{1, 0.5, {}}, {2, 1.0, {}}};
  CHECK(played_varied(plan, costs, nullptr).makespan.picoseconds == picoseconds_of(8.5));
  costs.stages.front().paces = {{1, 0.5, 6}, {2, 1.0, 3}};
  costs.rounds = 6;
  CHECK(played_varied(plan, costs, nullptr).makespan.picoseconds == picoseconds_of(6.5));
}

// A microbatch takes 3 s, loading it l. The first is there. With l = 2 nobody waits: 4 x 3 and the
// reduction. With l = 5 the loads of a step end at 4 x 5; the last pass starts at 15 and is done.
TEST_CASE("a slow data loader sets the pace of a step", "[variation]") {
  ParallelPlan plan = plan_of(2);
  plan.microbatches = 4;
  StepCosts costs = one_stage(1, 2);
  costs.stages.front().load = Seconds(2);
  CHECK(played_varied(plan, costs, nullptr, false).makespan.picoseconds == picoseconds_of(12.5));
  costs.stages.front().load = Seconds(5);
  CHECK(played_varied(plan, costs, nullptr, false).makespan.picoseconds == picoseconds_of(20));
}

TEST_CASE("every gradient compression is found by its name", "[compression]") {
  for (const GradientCompression& row : gradient_compressions) {
    const bool low_rank = row.kind == CompressionKind::low_rank;
    const auto found = gradient_compression(low_rank ? "powersgd-4" : row.name);
    REQUIRE(found);
    CHECK(found->name == row.name);
    CHECK(found->rank == (low_rank ? 4 : 0));
    // Each sends less than the four bytes of an fp32 gradient, and none is free.
    CHECK(row.wire_bytes < 4);
    CHECK(row.passes + row.passes_fixed > 0);
  }
  for (const char* wrong :
       {"none", "", "powersgd", "powersgd-", "powersgd-0", "powersgd-x", "2bit"})
    CHECK_FALSE(gradient_compression(wrong));
}
