// The fit of matrix products against the predictor's own model with known constants.
#include "calibrate/gemm_fit.hpp"

#include "simulator/costs/gemm_model.hpp"
#include "tests/calibrate/noisy_samples.hpp"
#include "tests/catch.hpp"

using namespace shardwise;
using namespace shardwise::noisy_samples;

namespace {

constexpr auto bf16 = static_cast<std::size_t>(DType::bf16);

Gpu sample_gpu() {
  Gpu gpu;
  gpu.id = "sample";
  gpu.family = "sample";
  gpu.vendor = "nvidia";
  gpu.sm_count = 108;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  gpu.dense_rate[bf16] = FlopsPerSecond(312e12);
  gpu.dense_rate[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond(19.5e12);
  return gpu;
}

GemmCalibration start_constants() {
  GemmCalibration c;
  c.tiles = {{256, 128, 1, 1}};
  for (const DType d : {DType::bf16, DType::fp32}) {
    c.issue_fraction[static_cast<std::size_t>(d)] = 0.8;
    c.sustained_fraction[static_cast<std::size_t>(d)] = 0.7;
  }
  c.wave_rounding = 0.5;
  c.ramp_bytes = 200;
  c.memory_fraction = 0.8;
  c.split_k_starts = 1;
  c.start = Seconds(3e-6);
  return c;
}

GemmCalibration true_constants(const GemmTile& tile) {
  GemmCalibration c = start_constants();
  c.tiles = {tile};
  c.issue_fraction[bf16] = 0.88;
  c.sustained_fraction[bf16] = 0.74;
  c.wave_rounding = 1;
  c.ramp_bytes = 300;
  c.memory_fraction = 0.7;
  c.start = Seconds(6e-6);
  return c;
}

GemmTimer gemm_timer(const Gpu& gpu) {
  Profile profile;
  profile.families.push_back({});
  profile.families.front().family = gpu.family;
  return [gpu, profile](const GemmCalibration& constants,
                        const std::vector<GemmPoint>& points) mutable {
    profile.families.front().gemm = constants;
    const GemmModel model(gpu, profile);
    std::vector<Seconds> times(points.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
      const GemmPoint& p = points[i];
      times[i] = model.time({p.m, p.n, p.k, p.batch, p.dtype, p.accumulate});
    }
    return times;
  };
}

// A scan over m shows the waves, small k the ramp, wide outputs the memory, tiny ones the start.
std::vector<GemmPoint> shapes() {
  std::vector<GemmPoint> points;
  const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    points.push_back({m, n, k, 1, DType::bf16, false, Seconds(0)});
  };
  for (std::int64_t m = 128; m <= 4096; m += 128) add(m, 4096, 4096);
  for (const std::int64_t k : {64, 128, 256, 512, 1024, 2048, 8192}) add(2048, 2048, k);
  for (const std::int64_t m : {4096, 6144, 8192, 12288, 16384})
    for (const std::int64_t k : {32, 64}) add(m, 16384, k);
  for (const std::int64_t m : {16, 32, 64, 8192, 12288, 16384}) add(m, 8192, 8192);
  for (const std::int64_t m : {64, 128, 256})
    for (const std::int64_t k : {16, 32, 64, 128}) add(m, 64, k);
  return points;
}

std::vector<GemmPoint> timed(std::vector<GemmPoint> points, const std::vector<Seconds>& times,
                             Noise* noise = nullptr) {
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i].time = noise ? noise->measured(times[i]) : times[i];
  return points;
}

}  // namespace

TEST_CASE("tile, rates, memory and start are found under noise, over 1,000 seeds") {
  const std::vector<GemmTile> tiles{
      {128, 128, 1, 1}, {256, 128, 1, 1}, {192, 128, 1, 1}, {128, 64, 1, 1}};
  const GemmTimer timer = gemm_timer(sample_gpu());
  const std::vector<GemmPoint> points = shapes();
  int recovered = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const GemmTile& tile = tiles[seed % tiles.size()];
    Noise noise(seed + 7777);
    const GemmFit fit = fit_gemm(timed(points, timer(true_constants(tile), points), &noise),
                                 start_constants(), timer);
    const GemmCalibration& c = fit.constants;
    recovered += c.tiles.size() == 1 && c.tiles[0].m == tile.m && c.tiles[0].n == tile.n &&
                 within(c.issue_fraction[bf16], 0.88) && within(c.sustained_fraction[bf16], 0.74) &&
                 within(c.memory_fraction, 0.7) && within(c.start.value, 6e-6);
  }
  CHECK(recovered >= 950);
}

// ln 1.5 = 0.41 is farther from the model than ln 0.8 = -0.22; 1.04 is within 5 %.
TEST_CASE("cells of shapes that the model does not explain are told, the farthest first") {
  const std::vector<GemmResidual> surface{
      {20, 10, 7, 1.04, 0.1}, {16, 8, 1, 0.8, 0}, {24, 12, 3, 1.5, 0.1}};
  const auto lines = surface_lines(surface);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "gemm: m n from 2^24 to 2^28, k from 2^12 to 2^14: 1.50 of the fitted time (3 points)");
  CHECK(lines[1] ==
        "gemm: m n from 2^16 to 2^20, k from 2^8 to 2^10: 0.80 of the fitted time (1 point)");
}

TEST_CASE("a constant that no point depends on stays, and the surface counts every point") {
  const GemmTimer timer = gemm_timer(sample_gpu());
  const auto points = shapes();
  const GemmFit fit = fit_gemm(timed(points, timer(true_constants({128, 128, 1, 1}), points)),
                               start_constants(), timer);
  CHECK(fit.constants.issue_fraction[static_cast<std::size_t>(DType::fp32)] == 0.8);
  CHECK(fit.constants.split_k_starts == 1);
  CHECK(fit.noise < 0.01);
  int counted = 0;
  for (const GemmResidual& cell : fit.surface) {
    counted += cell.points;
    CHECK(cell.ratio == Approx(1).epsilon(0.05));
  }
  CHECK(counted == static_cast<int>(points.size()));
  CHECK(fit.notes.empty());
}

TEST_CASE("points beyond the datasheet end at the datasheet, and the fit says so") {
  const GemmTimer timer = gemm_timer(sample_gpu());
  const auto points = shapes();
  auto times = timer(true_constants({128, 128, 1, 1}), points);
  for (std::size_t i = 0; i < times.size(); ++i)  // a third faster than the datasheet allows
    times[i] = (0.74 / 1.33) * times[i];
  const GemmFit fit = fit_gemm(timed(points, times), start_constants(), timer);
  CHECK(fit.constants.sustained_fraction[bf16] <= 1);
  REQUIRE(fit.notes.size() == 1);
  CHECK(fit.notes.front() == "bf16: as fast as the datasheet allows; the points are faster still");
}

TEST_CASE("which measurements are products that can be fitted") {
  Measurement m;
  m.bench = "gemm";
  m.sizes = {{"m", 1024}, {"n", 512}, {"k", 256}};
  m.labels = {{"dtype", "bf16"}, {"statistic", "mean"}};
  m.quantity = "flops_per_s";
  m.value = 1e12;
  Measurement best = m, biased = m, unknown = m, timed_one = m;
  best.labels["statistic"] = "max";  // the luckiest sample says nothing of the usual one
  biased.labels["epilogue"] = "bias";
  unknown.labels.erase("dtype");
  timed_one.quantity = "time_s";
  timed_one.value = 3e-3;
  const auto points = gemm_points({m, best, biased, unknown, timed_one});
  REQUIRE(points.size() == 2);
  CHECK(points.at(0).time.value == Approx(2.0 * 1024 * 512 * 256 / 1e12));
  CHECK(points.at(1).time.value == Approx(3e-3));
}

TEST_CASE("one statistic of a product counts, and its summary is no further point") {
  Measurement mean;
  mean.bench = "gemm";
  mean.sizes = {{"m", 1024}, {"n", 512}, {"k", 256}};
  mean.labels = {{"dtype", "bf16"}, {"statistic", "mean"}};
  mean.quantity = "flops_per_s";
  mean.value = 1e12;
  mean.source = "finder.txt:3";
  Measurement middle = mean, most = mean, summary = mean, other_file = mean;
  middle.labels["statistic"] = summary.labels["statistic"] = "median";
  middle.value = summary.value = 1.1e12;
  summary.source = "finder.txt:9";
  most.labels["statistic"] = "max";
  other_file.source = "again.txt:3";
  const auto points = gemm_points({mean, middle, most, summary, other_file});
  // finder.txt gives its median, 2 x 1024 x 512 x 256 FLOP at 1.1 TFLOP/s; again.txt its mean.
  REQUIRE(points.size() == 2);
  CHECK(points.at(0).time.value == Approx(2.0 * 1024 * 512 * 256 / 1.1e12));
  CHECK(points.at(1).time.value == Approx(2.0 * 1024 * 512 * 256 / 1e12));
}
