#include "calibrate/measuring/measure.hpp"

#include <algorithm>
#include <memory>

#include "tests/catch.hpp"

using namespace shardwise;

namespace {

// A device whose runs take what a test says: run i takes times[i], the last one for ever.
struct Script {
  std::vector<double> times{1e-3};
  std::vector<int> slowed;     // runs, counted from 0, in which the GPU is too hot
  std::vector<int> disturbed;  // runs in which the host came between
  RunStatus fails = RunStatus::ok;
  int fails_at = -1;

  int runs = 0;
  SimTime now;
  std::vector<double> pauses;

  BenchDevice device() {
    const auto has = [](const std::vector<int>& list, int i) {
      return std::find(list.begin(), list.end(), i) != list.end();
    };
    BenchDevice d;
    d.prepare = [this, has](const BenchPoint&) {
      return Prepared{
          RunStatus::ok,
          [this, has] {
            const int i = runs++;
            if (i == fails_at) return Sample{fails, 0, Seconds(0), false, "scripted"};
            const auto at = std::min(times.size() - 1, static_cast<std::size_t>(i));
            now = now + Seconds(times[at]);
            return Sample{RunStatus::ok, times[at], Seconds(times[at]), has(disturbed, i), ""};
          },
          ""};
    };
    d.clock_state = [this, has] { return ClockState{has(slowed, runs - 1), 1500}; };
    d.now = [this] { return now; };
    d.wait = [this](Seconds pause) {
      pauses.push_back(pause.value);
      now = now + pause;
    };
    return d;
  }
};

const MeasuringRules rules{{5, 100, Seconds(2e-3), 0.005}, 2, Seconds(0.05)};

}  // namespace

TEST_CASE("warm-ups are not counted, and equal runs stop at the fewest samples") {
  Script script;
  script.times = {9e-3, 8e-3, 1e-3};  // two warm-ups, then 1 ms each
  const Finding found = measure(script.device(), {}, rules, Seconds(10));
  CHECK(found.outcome == Outcome::measured);
  CHECK(found.value == 1e-3);
  CHECK(found.samples == 5);
  CHECK(found.discarded == 0);
  CHECK(found.sm_mhz == 1500);
  // 9 + 8 + 5 x 1 ms.
  CHECK(found.took.value == Approx(22e-3));
}

TEST_CASE("short runs go on until the device was busy for long enough") {
  Script script;
  script.times = {1e-4};
  // 2 ms at 0.1 ms a run: 20 runs.
  CHECK(measure(script.device(), {}, rules, Seconds(10)).samples == 20);
}

TEST_CASE("noise asks for more runs, up to the most") {
  Script script;
  script.times.clear();
  for (int i = 0; i < 300; ++i) script.times.push_back(i % 2 == 0 ? 1e-3 : 1.2e-3);
  const Finding found = measure(script.device(), {}, rules, Seconds(10));
  // IQR 0.2 of 1.1 ms: the error is 0.17 / sqrt(n), above 0.5 % up to n = 1140, so 100 stops it.
  CHECK(found.samples == 100);
  CHECK(found.value == Approx(1.1e-3));
  CHECK(found.spread == Approx(0.2 / 1.1));
}

TEST_CASE("the time given ends a bench, after one run at least") {
  Script script;
  script.times = {1.0};
  // One warm-up of 1 s is all that a budget of 2.5 s allows (a third of it), then two runs.
  const Finding some = measure(script.device(), {}, rules, Seconds(2.5));
  CHECK(script.runs == 3);
  CHECK(some.samples == 2);
  Script late;
  late.times = {1.0};
  CHECK(measure(late.device(), {}, rules, Seconds(0)).samples == 1);
}

TEST_CASE("runs of a slowed GPU are discarded with growing pauses") {
  Script script;
  script.slowed = {2, 3, 4, 5, 6};
  const Finding found = measure(script.device(), {}, rules, Seconds(10));
  CHECK(found.samples == 5);
  CHECK(found.discarded == 5);
  // 50 ms three times; from the fourth in a row on, the pause grows by 1.5 times itself:
  // 125 ms, 312.5 ms.
  REQUIRE(script.pauses.size() == 5);
  CHECK(script.pauses[2] == Approx(0.05));
  CHECK(script.pauses[3] == Approx(0.125));
  CHECK(script.pauses[4] == Approx(0.3125));
}

TEST_CASE("a disturbed run is discarded without a pause") {
  Script script;
  script.disturbed = {3};
  const Finding found = measure(script.device(), {}, rules, Seconds(10));
  CHECK(found.discarded == 1);
  CHECK(found.samples == 5);
  CHECK(script.pauses.empty());
}

TEST_CASE("a GPU that is always too hot gives no figure") {
  Script script;
  for (int i = 0; i < 1000; ++i) script.slowed.push_back(i);
  const Finding found = measure(script.device(), {}, rules, Seconds(1));
  CHECK(found.outcome == Outcome::throttled);
  CHECK(found.samples == 0);
  CHECK(found.discarded > 0);
  CHECK_FALSE(found.why.empty());
}

TEST_CASE("a bench that is always disturbed says so") {
  Script script;
  for (int i = 0; i < 3000; ++i) script.disturbed.push_back(i);
  const Finding found = measure(script.device(), {}, rules, Seconds(1));
  CHECK(found.outcome == Outcome::throttled);
  CHECK(found.why == "no run without a disturbance within the time given");
}

TEST_CASE("a run that fails ends the bench with its reason") {
  const auto outcome = [](RunStatus status, int at) {
    Script script;
    script.fails = status;
    script.fails_at = at;
    const Finding found = measure(script.device(), {}, rules, Seconds(1));
    CHECK(found.why == "scripted");
    return found.outcome;
  };
  CHECK(outcome(RunStatus::out_of_memory, 0) == Outcome::out_of_memory);
  CHECK(outcome(RunStatus::unsupported, 0) == Outcome::unsupported);
  CHECK(outcome(RunStatus::failed, 3) == Outcome::failed);
  CHECK(outcome(RunStatus::lost, 4) == Outcome::lost);
}

TEST_CASE("a time that is no number is a failure, not a measurement") {
  Script script;
  script.times = {1e-3, 1e-3, -1.0};
  CHECK(measure(script.device(), {}, rules, Seconds(1)).outcome == Outcome::failed);
}

TEST_CASE("the buffers of a bench are gone when it is measured") {
  const auto buffer = std::make_shared<int>(7);
  Script script;
  BenchDevice device = script.device();
  const auto prepare = device.prepare;
  device.prepare = [&](const BenchPoint& point) {
    Prepared prepared = prepare(point);
    prepared.run_once = [buffer, run = prepared.run_once] { return run(); };
    return prepared;
  };
  measure(device, {}, rules, Seconds(1));
  CHECK(buffer.use_count() == 1);  // ours alone
}
