#include "planner/answers/measured_step.hpp"

#include <nlohmann/json.hpp>

#include "planner/report/measured_report.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"

namespace shardwise {
namespace {

Forecast ten_seconds() {
  Forecast f;
  f.step_time = {Seconds(9), Seconds(10), Seconds(13)};
  f.tokens_per_s = 3'000;
  f.mfu = 0.4;
  return f;
}

}  // namespace

// 12.5 s of 10 s: 1.25 times the time, 1 / 1.25 = 0.8 of 3,000 tokens/s and of 40 %.
TEST_CASE("a measured step is held beside its forecast") {
  const MeasuredStep m = measured_step(Seconds(12.5), ten_seconds(), 8);
  CHECK(m.of_forecast == 1.25);
  CHECK(m.place == Measured::within);
  CHECK(m.tokens_per_s == Approx(2'400));
  CHECK(m.mfu == Approx(0.32));
  CHECK(measured_text(m) ==
        "measured 12.5 s a step: 1.25 times the forecast, within its 80 % interval; 2,400 "
        "tokens/s, MFU 32.0 %\n");
}

TEST_CASE("a step outside of the interval is told what to look at") {
  const MeasuredStep slow = measured_step(Seconds(13.1), ten_seconds(), 8);
  CHECK(slow.place == Measured::above);
  CHECK(holds(measured_text(slow), "--loader-rate"));
  const MeasuredStep fast = measured_step(Seconds(8.9), ten_seconds(), 8);
  CHECK(fast.place == Measured::below);
  CHECK(holds(measured_text(fast), "as above?"));
}

// 8 x 1.2 s = 9.6 s lie within 9 to 13 s; 8 x 1.1 s = 8.8 s do not. 40 % x 10 / 1.1 = 364 %.
TEST_CASE("an iteration that is one microbatch of a step is known by its interval") {
  const MeasuredStep one = measured_step(Seconds(1.2), ten_seconds(), 8);
  CHECK(one.microbatches == 8);
  CHECK(measured_json(one).at("microbatches") == 8);
  CHECK(holds(measured_text(one), "one of the 8 microbatches of a step?"));
  const MeasuredStep other = measured_step(Seconds(1.1), ten_seconds(), 8);
  CHECK(other.microbatches == 1);
  CHECK(holds(measured_text(other), "more than these GPUs can compute"));
}

}  // namespace shardwise
