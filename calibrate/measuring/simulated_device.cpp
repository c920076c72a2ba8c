#include "calibrate/measuring/simulated_device.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace shardwise {
namespace {

struct SimulatedClock {
  SimTime now;
  int preparations = 0;
  bool slowed = false;
};

// FNV-1a, 64 bits: the same for a text on every machine.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

// SplitMix64 (Steele, Lea, Flood 2014): uniform in [0, 1).
double draw(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  z ^= z >> 31U;
  return static_cast<double>(z >> 11U) * 0x1.0p-53;
}

// Nearly normal, of variance 1: the sum of 12 uniform draws less 6. No library call that two
// machines may round differently.
double nearly_normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += draw(state);
  return sum;
}

std::int64_t size_or(const BenchPoint& point, const char* key, std::int64_t otherwise) {
  const auto found = point.sizes.find(key);
  return found == point.sizes.end() ? otherwise : found->second;
}

Seconds ideal_time(const SimulatedGpu& gpu, const BenchPoint& point) {
  const RoughWork work = rough_work(point);
  return gpu.start + std::max(work.flops / gpu.rate, work.bytes / gpu.bandwidth);
}

Sample simulated_run(const SimulatedGpu& gpu, SimulatedClock& clock, Seconds ideal,
                     std::uint64_t& state) {
  Seconds time = std::max(0.5, 1 + gpu.noise * nearly_normal(state)) * ideal;
  if (draw(state) < gpu.outliers) time = 3.0 * time;
  clock.slowed = draw(state) < gpu.slowed;
  if (clock.slowed) time = 1.6 * time;
  clock.now = clock.now + time;
  Sample sample;
  sample.value = time.value;
  sample.busy = time;
  return sample;
}

}  // namespace

RoughWork rough_work(const BenchPoint& point) {
  const std::int64_t m = size_or(point, "m", 0);
  const std::int64_t n = size_or(point, "n", 0);
  const std::int64_t k = size_or(point, "k", 0);
  const std::int64_t batch = size_or(point, "batch", 1) * size_or(point, "experts", 1);
  const double tokens = static_cast<double>(batch * size_or(point, "sequence", 0));
  const double scores =
      tokens * static_cast<double>(size_or(point, "sequence", 0) * size_or(point, "heads", 1));
  const std::int64_t matrices = 2 * batch * (m * k + k * n + m * n);
  const std::int64_t rows = 4 * size_or(point, "rows", 0) * size_or(point, "columns", 1);
  const double product = 2.0 * static_cast<double>(batch) * static_cast<double>(m) *
                         static_cast<double>(n) * static_cast<double>(k);
  return {Flops(product + 4 * scores * static_cast<double>(size_or(point, "head_dim", 0))),
          Bytes(matrices + rows + 2 * size_or(point, "bytes", 0) +
                16 * size_or(point, "parameters", 0))};
}

BenchDevice simulated_device(const SimulatedGpu& gpu) {
  const auto clock = std::make_shared<SimulatedClock>();
  BenchDevice device;
  device.prepare = [gpu, clock](const BenchPoint& point) {
    clock->now = clock->now + gpu.preparation;
    if (gpu.lost_after && clock->preparations++ >= *gpu.lost_after)
      return Prepared{RunStatus::lost, {}, "the simulated GPU has fallen off the bus"};
    if (point.bench == gpu.fails) return Prepared{RunStatus::failed, {}, "simulated failure"};
    if (rough_work(point).bytes > gpu.memory)
      return Prepared{RunStatus::out_of_memory, {}, "simulated memory is full"};
    const Seconds ideal = ideal_time(gpu, point);
    std::uint64_t state = hash_of(identity(point));
    return Prepared{
        RunStatus::ok,
        [gpu, clock, ideal, state]() mutable { return simulated_run(gpu, *clock, ideal, state); },
        {}};
  };
  device.clock_state = [clock] { return ClockState{clock->slowed, clock->slowed ? 1100 : 1980}; };
  device.now = [clock] { return clock->now; };
  device.wait = [clock](Seconds pause) { clock->now = clock->now + pause; };
  return device;
}

}  // namespace shardwise
