// BenchDevice: all that the measuring loop knows of a GPU, as callables. The CUDA program fills
// them in with the driver, tests with a simulated clock.
#pragma once

#include <functional>
#include <string>

#include "calibrate/measuring/bench_point.hpp"
#include "catalog/units.hpp"

namespace shardwise {

enum class RunStatus {
  ok,
  out_of_memory,  // of this bench; smaller ones may do
  unsupported,    // by this GPU, or a library that is not there
  failed,         // this bench; others may do
  lost,           // the GPU: nothing more can be measured on it
};

// What one run of a bench told. A time is that of the device, from cold caches.
struct Sample {
  RunStatus status = RunStatus::ok;
  double value = 0;        // in the unit of the point's quantity
  Seconds busy;            // of the device
  bool disturbed = false;  // the host came between: not to be counted
  std::string why;         // where the status is not ok
};

// A bench with its buffers allocated and filled; they go with the last copy of `run_once`.
struct Prepared {
  RunStatus status = RunStatus::ok;
  std::function<Sample()> run_once;
  std::string why;
};

// Asked for after every run. `slowed`: too hot, or braked by its power supply, so that a run says
// nothing of a GPU in good health. The power cap does not count: training meets it as well.
struct ClockState {
  bool slowed = false;
  int sm_mhz = 0;  // 0: not known
};

struct BenchDevice {
  std::function<Prepared(const BenchPoint&)> prepare;
  std::function<ClockState()> clock_state;
  std::function<SimTime()> now;
  std::function<void(Seconds)> wait;
};

}  // namespace shardwise
