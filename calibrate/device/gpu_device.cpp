#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <thread>

#include "calibrate/device/gpu_benches.hpp"

namespace shardwise {
namespace {

struct BenchRow {
  std::string_view bench;
  RunOnce (*prepare)(Gpu&, const BenchPoint&);
};
constexpr std::array<BenchRow, 7> benches{{
    {"gemm", prepare_gemm},
    {"gemm_grouped", prepare_gemm_grouped},
    {"attention", prepare_attention},
    {"memory_kernel", prepare_memory_kernel},
    {"copy", prepare_copy},
    {"launch", prepare_launch},
    {"memory_held", prepare_memory_held},
}};

RunOnce prepare_on(Gpu& gpu, const BenchPoint& point) {
  gpu.activate();
  for (const BenchRow& row : benches)
    if (row.bench == point.bench) return row.prepare(gpu, point);
  not_supported("no bench of this name on one GPU");
}

Sample failed_run(const CudaFailure& failure) {
  Sample sample;
  sample.status = failure.status;
  sample.why = failure.why;
  return sample;
}

}  // namespace

Prepared guarded(const std::function<RunOnce()>& prepare) {
  try {
    return {RunStatus::ok,
            [run = prepare()] {
              try {
                return run();
              } catch (const CudaFailure& failure) {
                return failed_run(failure);
              }
            },
            {}};
  } catch (const CudaFailure& failure) {
    return {failure.status, {}, failure.why};
  }
}

BenchDevice bench_device(Gpu& gpu) {
  using Clock = std::chrono::steady_clock;
  BenchDevice device;
  device.prepare = [&gpu](const BenchPoint& point) {
    return guarded([&] { return prepare_on(gpu, point); });
  };
  device.clock_state = [&gpu] { return gpu.clock_state(); };
  device.now = [begun = Clock::now()] {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun);
    return SimTime{passed.count() * 1000};
  };
  device.wait = [](Seconds pause) {
    std::this_thread::sleep_for(std::chrono::duration<double>(pause.value));
  };
  return device;
}

}  // namespace shardwise
