#include "planner/answers/measured_memory.hpp"

#include <nlohmann/json.hpp>

#include "planner/report/measured_report.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"

namespace shardwise {
namespace {

using namespace literals;

// A device peak of 20 GiB, nine of ten times within 18 and 24.
Forecast twenty_gib() {
  Forecast f;
  StageForecast s;
  s.peak = {10_GiB, 16_GiB, 20_GiB};
  f.stages = {s};
  f.peak_device = {18_GiB, 20_GiB, 24_GiB};
  return f;
}

}  // namespace

// 18 / 10 = 1.8, 18 / 16 = 1.125 and 18 / 20 = 0.9; the interval is 0.9 to 1.2 times.
TEST_CASE("a measured peak is held beside every figure that it may be") {
  const MeasuredMemory m = measured_memory(18_GiB, twenty_gib());
  CHECK(m.readings[0].place == Measured::above);
  CHECK(m.readings[1].place == Measured::within);
  CHECK(m.readings[2].place == Measured::within);
  CHECK(m.place() == Measured::within);
  CHECK(measured_text(m) ==
        "measured 18.0 GiB at the peak of a GPU: 1.80 times the 10.0 GiB forecast as allocated, "
        "1.12 times the 16.0 GiB forecast as reserved, 0.90 times the 20.0 GiB forecast as device; "
        "within the 80 % interval of reserved and device\n");
  const Json j = measured_json(m);
  CHECK(j["memory_gib"] == 18);
  CHECK(j["interval"] == "within");
  CHECK(j["as"]["allocated"]["of_forecast"] == 1.8);
  CHECK(j["as"]["allocated"]["interval"] == "above");
}

// 25 / 20 = 1.25 is above 1.2, as is what it is of the smaller figures; 8 / 10 = 0.8 is below 0.9;
// 13 / 10 = 1.3 is above as allocated, 13 / 16 = 0.81 below as reserved.
TEST_CASE("a peak outside of every interval is told what to look at") {
  CHECK(measured_memory(25_GiB, twenty_gib()).place() == Measured::above);
  CHECK(holds(measured_text(measured_memory(25_GiB, twenty_gib())), "--used-memory"));
  CHECK(measured_memory(8_GiB, twenty_gib()).place() == Measured::below);
  CHECK(holds(measured_text(measured_memory(8_GiB, twenty_gib())), "not one moment?"));
  CHECK(measured_memory(13_GiB, twenty_gib()).place() == Measured::below);
}

}  // namespace shardwise
