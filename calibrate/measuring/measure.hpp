// The measuring loop: prepares one point, warms up, and runs it until its median is known or its
// time is up. Runs of a slowed GPU are discarded and counted, with a pause after each.
#pragma once

#include <string>

#include "calibrate/measuring/bench_device.hpp"
#include "calibrate/measuring/stopping.hpp"

namespace shardwise {

enum class Outcome {
  measured,
  out_of_memory,
  unsupported,
  failed,
  lost,
  throttled,  // not one run at full clock within the time
};

// What became of a point. The figures are those of a measured one.
struct Finding {
  Outcome outcome = Outcome::measured;
  double value = 0;   // median, in the unit of the quantity
  double spread = 0;  // IQR over median
  int samples = 0;
  int discarded = 0;
  int sm_mhz = 0;   // median over the samples; 0: not known
  std::string why;  // where it was not measured
  Seconds took;     // from the preparation on, by the device's clock

  friend bool operator==(const Finding&, const Finding&) = default;
};

// Pauses after discarded runs as NVBench makes them: 50 ms, and after the third in a row growing
// by 1.5 times themselves, at most by half a second (nvbench/detail/measure_cold.cu).
struct MeasuringRules {
  StoppingRule stopping;
  int warm_ups = 2;
  Seconds first_pause = Seconds(0.05);
};

// Never takes much longer than `budget`: one run after it is used up, the loop ends, however few
// the samples. At least one run is made.
Finding measure(const BenchDevice& device, const BenchPoint& point, const MeasuringRules& rules,
                Seconds budget);

}  // namespace shardwise
