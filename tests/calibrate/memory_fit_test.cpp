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

TEST_CASE("cycles of an element are found where memory does not hide them") {
  Gpu gpu;
  gpu.sm_count = 100;
  gpu.boost_clock_mhz = 1500;
  const BytesPerSecond streaming(1e12);
  const Seconds start(3e-6);
  int good = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Noise noise(seed);
    std::vector<Measurement> measured;
    for (std::int64_t elements = 1 << 22; elements <= 1 << 28; elements *= 2)
      for (const std::int64_t each : {2, 4, 12}) {
        Measurement m;
        m.bench = "memory_kernel";
        m.quantity = "time_s";
        m.labels["kernel"] = element_by_element;
        m.sizes = {{"elements", elements}, {"bytes", each * elements}};
        // 0.8 cycles of 100 multiprocessors at 1.5 GHz are 5.33 ps; 12 B at 1 TB/s are 12 ps, and
        // bound that kernel; 2 and 4 B do not.
        const double longer = std::max(0.8 / (100 * 1500e6), static_cast<double>(each) / 1e12);
        m.value = noise.measured(start + Seconds(longer * static_cast<double>(elements))).value;
        measured.push_back(m);
      }
    const auto c = fit_cycles(single_elements(measured), gpu, streaming, start);
    REQUIRE(c);
    good += within(c->value, 0.8);
  }
  CHECK(good >= 950);
  // 12 B of each element take longer than its index: nothing to be told.
  CHECK_FALSE(fit_cycles({{1e8, Bytes(1'200'000'000), Seconds(1.2e-3)}}, gpu, streaming, start));
  // Ten starts at least: 20 us tell nothing.
  CHECK_FALSE(fit_cycles({{1e6, Bytes(1'000'000), Seconds(20e-6)}}, gpu, streaming, start));
}

TEST_CASE("scattered rows have a fraction of their own") {
  std::vector<std::string> notes;
  // 8192 x 4096 elements of 2 B, read and written, at 0.4 TB/s of 1.
  const Seconds time(8192.0 * 4096 * 4 / 0.4e12);
  const auto c =
      fit_memory(moved_bytes({timed_kernel("gather", 8192, time)}), BytesPerSecond(1e12), notes);
  CHECK(c.at("memory.gather_fraction").value == Approx(0.4));
  CHECK(c.size() == 1);
}
