#include "planner/answers/goodput.hpp"

#include <cmath>

#include "catalog/operations.hpp"
#include "planner/answers/run_outlook.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/forecast/model_states.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

// A day of work, a failure every two hours, checkpoints of a minute, restarts of five.
const LongRun day{Seconds(86400), Seconds(7200), Seconds(60), Seconds(300)};

Operations known_operations() {
  auto o = load_operations(source_dir() + "/catalog");
  REQUIRE(o);
  return *std::move(o);
}

}  // namespace

TEST_CASE("the intervals of Young and Daly") {
  // Young: sqrt(2 x 60 x 7200) = sqrt(864000) = 929.516 s.
  CHECK(young_interval(day).value == Approx(929.516).epsilon(1e-6));
  // Daly: d / 2M = 60 / 14400 = 1 / 240, its root 0.0645497:
  // 929.516 x (1 + 0.0645497 / 3 + 1 / 2160) - 60 = 929.516 x 1.02197953 - 60 = 889.946 s.
  CHECK(daly_interval(day).value == Approx(889.946).epsilon(1e-5));
  // Where a checkpoint takes longer than two failures are apart, Daly says M.
  CHECK(daly_interval({Seconds(1), Seconds(10), Seconds(20), Seconds(0)}) == Seconds(10));
}

TEST_CASE("Daly's wall time, and what it becomes without failures") {
  // 7200 e^(300/7200) (e^(960/7200) - 1) 86400 / 900
  //   = 7200 x 1.0425469 x 0.1426309 x 96 = 102,782 s at an interval of 900 s.
  CHECK(expected_wall_time(day, Seconds(900)).value == Approx(102782).epsilon(1e-3));
  // With failures once in a million years the checkpoints alone are left: W (t + d) / t.
  const LongRun calm{Seconds(86400), Seconds(3e13), Seconds(60), Seconds(300)};
  CHECK(expected_wall_time(calm, Seconds(900)).value == Approx(86400 * 960.0 / 900).epsilon(1e-6));
  const SimulatedWallTime simulated = simulated_wall_time(calm, Seconds(900), 10, 1);
  CHECK(simulated.mean.value == Approx(86400 * 960.0 / 900).epsilon(1e-9));  // 96 segments
}

TEST_CASE("simulated failures agree with the formula, and a seed repeats them") {
  // 20 days of work see 240 failures each; the mean of 400 runs is good to about
  // 1 / sqrt(400 x 240) of what failures cost.
  const LongRun long_run{Seconds(20 * 86400), Seconds(7200), Seconds(60), Seconds(300)};
  const SimulatedWallTime once = simulated_wall_time(long_run, Seconds(900), 400, 42);
  CHECK(once.mean.value == Approx(expected_wall_time(long_run, Seconds(900)).value).epsilon(0.01));
  CHECK(once.low <= once.mean);
  CHECK(once.mean <= once.high);
  CHECK(simulated_wall_time(long_run, Seconds(900), 400, 42).mean == once.mean);
  CHECK_FALSE(simulated_wall_time(long_run, Seconds(900), 400, 43).mean == once.mean);
  // The best of the simulated intervals is near Daly's: the curve is flat there.
  const Seconds best = best_simulated_interval(long_run, 400, 42);
  CHECK(expected_wall_time(long_run, best).value <
        1.01 * expected_wall_time(long_run, daly_interval(long_run)).value);
}

// 86,400 s x 250 with failures 7200 s apart are 3,600 of them and played, twice that is not. A mean
// doubles with the work, a spread grows by its root: 1.414, of 400 runs good to a tenth.
TEST_CASE("a run of thousands of failures is told by its moments as one of fewer is played") {
  const LongRun played{Seconds(250 * 86400), Seconds(7200), Seconds(60), Seconds(300)};
  LongRun told = played;
  told.useful = 2.0 * played.useful;
  const auto few = simulated_wall_time(played, Seconds(900), 400, 42);
  const auto many = simulated_wall_time(told, Seconds(900), 400, 42);
  CHECK(many.mean.value == Approx(2 * few.mean.value).epsilon(0.002));
  CHECK((many.high - many.low).value ==
        Approx(std::sqrt(2) * (few.high - few.low).value).epsilon(0.15));
  // 48,000 whole segments: Daly's formula to the digit.
  CHECK(many.mean.value == Approx(expected_wall_time(told, Seconds(900)).value).epsilon(1e-9));
  // Seconds by the age of the universe, 4e17: failure by failure this would not end.
  told.useful = Seconds(4.32e17);
  CHECK(simulated_wall_time(told, Seconds(900), 400, 42).mean.value ==
        Approx(1e10 * many.mean.value).epsilon(1e-6));
}

TEST_CASE("a run that fails too often to get anywhere says so at once") {
  // e^(9060 / 10) attempts at each segment: given up at 10,000 times the work and one segment.
  const LongRun run{Seconds(1e9), Seconds(10), Seconds(60), Seconds(300)};
  const SimulatedWallTime wall = simulated_wall_time(run, Seconds(9000), 100, 1);
  CHECK(wall.mean.value == Approx(1e4 * (1e9 + 9060)));
  CHECK(wall.low == wall.mean);
  CHECK(wall.high == wall.mean);
}

TEST_CASE("more failures never make a run faster") {
  Seconds before(0);
  for (const double hours : {1000.0, 100.0, 10.0, 2.0, 1.0}) {
    const LongRun run{Seconds(864000), Seconds(hours * 3600), Seconds(60), Seconds(300)};
    const Seconds now = expected_wall_time(run, daly_interval(run));
    CHECK(before < now);
    before = now;
  }
}

TEST_CASE("Llama 3's failures: 16,384 GPUs x 54 days / 419") {
  // = 884,736 GPU days / 419 = 2111.5 days of one GPU, 3.09 hours of all 16,384.
  const FailureRecord record = known_operations().failures.front();
  CHECK(record.mean_time_between_failures().value / 86400 == Approx(2111.54).epsilon(1e-5));
  CHECK(record.mean_time_between_failures().value / 16384 / 3600 == Approx(3.0931).epsilon(1e-4));
}

TEST_CASE("a checkpoint holds what is trained, its master and its optimizer states") {
  Request pretraining = request_for("llama-3.1-8b", "8xH100-SXM", {Method::pretrain});
  pretraining.framework = "megatron-lm";
  const ResolvedRequest r = resolved(pretraining);
  Workload w = choose_workload(r, Method::pretrain, r.clusters.front(), 0).workload;
  w.framework.parallel.pads_vocabulary = false;
  // 16-bit weights 2, fp32 master 4, two fp32 states 8: 14 B for each of 8,030,261,248.
  CHECK(checkpoint_size(w).value == 14 * 8'030'261'248LL);
  Request low_rank = request_for("llama-3.1-8b", "4090", {Method::lora});
  low_rank.framework = "peft";
  const ResolvedRequest adapters = resolved(low_rank);
  const Workload lora =
      choose_workload(adapters, Method::lora, adapters.clusters.front(), 0).workload;
  // PEFT's default: rank 8 on q and v, 32 layers x (8 x (4096 + 4096) + 8 x (4096 + 1024)) =
  // 3,407,872 parameters in fp32 with two fp32 states: 12 B each.
  CHECK(checkpoint_size(lora).value == 12 * 3'407'872LL);
}

TEST_CASE("energy and the cheapest rental") {
  const ResolvedRequest r = resolved(request_for("llama-3.1-8b", "16xH100-SXM"));
  const Cluster& cluster = r.clusters.front();
  // 16 GPUs at 700 W for 10 hours: 112 kWh.
  CHECK(gpu_energy(cluster, Seconds(36000)).value == Approx(112));
  // Held to 350 W they take half of that; held to more than the board's 700 W the same.
  Cluster held = cluster;
  held.groups.front().gpu.power_limit_w = 350;
  CHECK(gpu_energy(held, Seconds(36000)).value == Approx(56));
  held.groups.front().gpu.power_limit_w = 800;
  CHECK(gpu_energy(held, Seconds(36000)).value == Approx(112));
  const auto rental = cheapest_rental(known_facts().catalog.prices, cluster);
  REQUIRE(rental);
  CHECK(rental->machines * rental->price->gpus >= 16);
  for (const CloudPrice& p : known_facts().catalog.prices.cloud)
    if (p.gpu == cluster.groups.front().gpu.id && p.per_hour && p.gpus == 8 && !p.single)
      CHECK(rental->per_hour.value <= 2 * p.per_hour->value);
  // Two machines are not joined by a marketplace of single ones; one is rented there.
  CHECK_FALSE(rental->price->single);
  CloudPrice dear;
  dear.gpu = cluster.groups.front().gpu.id;
  dear.gpus = 8;
  dear.per_hour = UsDollars{20};
  CloudPrice cheap = dear;
  cheap.per_hour = UsDollars{10};
  cheap.single = true;
  Prices both;
  both.cloud = {dear, cheap};
  CHECK(cheapest_rental(both, cluster)->per_hour.value == 40);  // 2 x 20
  const ResolvedRequest one = resolved(request_for("llama-3.1-8b", "8xH100-SXM"));
  CHECK(cheapest_rental(both, one.clusters.front())->per_hour.value == 10);
  // 12 cards need a second machine of eight, of which four stay idle: 2 x 20.
  Cluster twelve = cluster;
  twelve.groups.front().nodes = 3;
  twelve.groups.front().gpus_per_node = 4;
  REQUIRE(twelve.gpus() == 12);
  const auto rounded_up = cheapest_rental(both, twelve);
  CHECK(rounded_up->machines == 2);
  CHECK(rounded_up->per_hour.value == 40);
  CHECK(for_hours({3.6}, Seconds(1800)).value == Approx(1.8));
}

TEST_CASE("the outlook of a run follows from its step") {
  Request request = request_for("llama-3.1-8b", "16xH100-SXM", {Method::full});
  request.tokens = 1'000'000'000;
  const ResolvedRequest r = resolved(request);
  const Workload w = choose_workload(r, Method::full, r.clusters.front(), 3).workload;
  ParallelPlan plan;
  plan.data = 16;
  plan.zero_stage = 3;
  plan.recompute = "none";
  plan.microbatches = 4;
  Forecast f;
  f.step_time.expected = Seconds(2);
  const auto o = run_outlook(r, {w, plan, r.clusters.front()}, f, known_operations());
  REQUIRE(o);
  // ceil(1e9 / 2048) = 488,282 sequences, 64 a step: 7630 steps of 2 s.
  CHECK(o->steps == 7630);
  CHECK(o->run.useful == Seconds(15260));
  CHECK(o->run.mean_time_between_failures.value ==
        Approx(16384.0 * 54 * 86400 / 419 / 16).epsilon(1e-12));
  CHECK(o->run.write.value == Approx(o->checkpoint / Bytes(1) / (16 * 83.3e6)));
  CHECK(o->goodput == Approx(o->run.useful / o->simulated.mean));
  CHECK(o->rent.value == Approx(o->rental->per_hour.value * o->simulated.mean.value / 3600));
  // A plan that does not fit is told of first, and only such a one.
  const auto told = [](const RunOutlook& outlook) {
    return !outlook.notes.empty() && outlook.notes.front().find("The plan does not fit") == 0;
  };
  CHECK_FALSE(told(*o));
  f.verdict = Verdict::does_not_fit;
  const auto missing = run_outlook(r, {w, plan, r.clusters.front()}, f, known_operations());
  REQUIRE(missing);
  CHECK(told(*missing));
  CHECK(missing->steps == o->steps);
  request.tokens.reset();
  CHECK_FALSE(run_outlook(resolved(request), {w, plan, r.clusters.front()}, f, known_operations()));
}

TEST_CASE("a run ends when its work is done, not with its last interval") {
  // Ten hours with a checkpoint every three: 3 + 3 + 3 + 1 hours and four checkpoints of a minute;
  // with one every twenty hours: ten hours and the one at the end. Nothing ever fails.
  LongRun run;
  run.useful = Seconds(36'000);
  run.write = Seconds(60);
  run.restart = Seconds(600);
  run.mean_time_between_failures = Seconds(1e30);
  CHECK(simulated_wall_time(run, Seconds(10'800), 3, 1).mean.value == Approx(36'240));
  CHECK(simulated_wall_time(run, Seconds(72'000), 3, 1).mean.value == Approx(36'060));
}

}  // namespace shardwise
