// A GPU that is not there: its clock is a number, its times follow from the sizes of a bench and a
// few rates, its noise from the bench's own text. For tests, and to try the program without a GPU.
#pragma once

#include <cstdint>
#include <optional>

#include "calibrate/measuring/bench_device.hpp"

namespace shardwise {

struct SimulatedGpu {
  Bytes memory = Bytes(std::int64_t{24} << 30);
  FlopsPerSecond rate = FlopsPerSecond(150e12);
  BytesPerSecond bandwidth = BytesPerSecond(900e9);
  Seconds start = Seconds(4e-6);        // of every kernel
  Seconds preparation = Seconds(0.01);  // of every bench
  double noise = 0.02;                  // relative, standard deviation of a run
  double outliers = 0.02;               // share of runs that take three times as long
  double slowed = 0.05;                 // share of runs in which the GPU is too hot
  std::optional<int> lost_after;        // so many preparations, the GPU is lost
  std::string fails;                    // benches of this name fail
};

// Work and memory of a point, roughly: exact enough to be deterministic and to grow with sizes.
struct RoughWork {
  Flops flops;
  Bytes bytes;
};
RoughWork rough_work(const BenchPoint& point);

// Copies of the device share one clock.
BenchDevice simulated_device(const SimulatedGpu& gpu);

}  // namespace shardwise
