#include "calibrate/memory_fit.hpp"

#include "tests/calibrate/noisy_samples.hpp"
#include "tests/catch.hpp"

using namespace shardwise;
using namespace shardwise::noisy_samples;

namespace {

Measurement timed_kernel(const std::string& name, std::int64_t rows, Seconds time) {
  Measurement m;
  m.bench = "memory_kernel";
  m.quantity = "time_s";
  m.labels = {{"kernel", name}};
  m.sizes = {{"rows", rows}, {"columns", 4096}};
  m.value = time.value;
  return m;
}

}  // namespace

TEST_CASE("fractions and the start of memory-bound kernels are found") {
  // 1 TB/s: additions at 0.9 of it and 3 us, norms at 0.7.
  int good = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Noise noise(seed);
    std::vector<Measurement> measured;
    for (std::int64_t rows = 64; rows <= 32768; rows *= 2) {
      const double elements = static_cast<double>(rows) * 4096;
      measured.push_back(
          timed_kernel("add", rows, noise.measured(Seconds(3e-6 + 6 * elements / 0.9e12))));
      measured.push_back(
          timed_kernel("rms_norm", rows, noise.measured(Seconds(3e-6 + 4 * elements / 0.7e12))));
    }
    std::vector<std::string> notes;
    const auto c = fit_memory(moved_bytes(measured), BytesPerSecond(1e12), notes);
    good += within(c.at("memory.streaming_fraction").value, 0.9) &&
            within(c.at("memory.reduction_fraction").value, 0.7) &&
            within(c.at("memory.start_us").value, 3, 0.1);
    CHECK(notes.empty());
  }
  CHECK(good >= 95);
}

TEST_CASE("a copy counts what it reads and what it writes") {
  Measurement copy;
  copy.bench = "copy";
  copy.labels = {{"direction", "device_local"}};
  copy.sizes = {{"bytes", 1'000'000}};
  copy.quantity = "time_s";
  copy.value = 1e-3;
  const auto points = moved_bytes({copy});
  REQUIRE(points.size() == 1);
  CHECK(points.at(0).moved.value == 2'000'000);
  copy.labels["direction"] = "host_to_device";
  CHECK(moved_bytes({copy}).empty());
}

TEST_CASE("faster than the datasheet is held at it, and said") {
  std::vector<std::string> notes;
  const auto c = fit_memory({{Bytes(1'000'000'000), Seconds(0.9e-3)}}, BytesPerSecond(1e12), notes);
  CHECK(c.at("memory.streaming_fraction").value == 1);
  CHECK(notes.size() == 1);
}
