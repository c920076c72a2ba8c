#include "calibrate/size_fit.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/robust_regression.hpp"
#include "tests/calibrate/noisy_samples.hpp"
#include "tests/catch.hpp"

using namespace shardwise;
using namespace shardwise::noisy_samples;

namespace {

// Two protocols: 10 us and 4 GB/s to 256 KiB, 40 us and 20 GB/s above.
Seconds truth(Bytes size) {
  const auto bytes = static_cast<double>(size.value);
  return size.value <= 1 << 18 ? Seconds(10e-6 + bytes / 4e9) : Seconds(40e-6 + bytes / 20e9);
}

std::vector<SweepPoint> doubling(int first, int last, Noise* noise = nullptr) {
  std::vector<SweepPoint> points;
  for (int e = first; e <= last; ++e) {
    const Bytes size(std::int64_t{1} << e);
    points.push_back({size, noise ? noise->measured(truth(size)) : truth(size), 25});
  }
  return points;
}

}  // namespace

TEST_CASE("alpha and beta of two protocols are found under noise, over 1,000 seeds") {
  int recovered = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Noise noise(seed);
    const SizeFit fit = fit_sizes(doubling(3, 30, &noise));
    if (fit.regimes.size() != 2) continue;
    const Regime &small = fit.regimes.front(), &large = fit.regimes.back();
    recovered += within(small.alpha.value, 10e-6) && within(1 / small.seconds_per_byte, 4e9) &&
                 within(large.alpha.value, 40e-6) && within(1 / large.seconds_per_byte, 20e9);
  }
  CHECK(recovered >= 950);
}

TEST_CASE("without noise the regimes are exact, and the border lies between them") {
  const SizeFit fit = fit_sizes(doubling(3, 30));
  REQUIRE(fit.regimes.size() == 2);
  CHECK(fit.regimes.front().to.value == 1 << 18);
  CHECK(fit.regimes.back().from.value == 1 << 19);
  CHECK(fit.regimes.front().alpha.value == Approx(10e-6));
  CHECK(fit.regimes.back().bandwidth()->value == Approx(20e9));
  CHECK(fit.low == Approx(1));
  CHECK(fit.high == Approx(1));
  // Borders at the geometric middle, 2^18.5 bytes = 370,728.
  CHECK(fit.time(Bytes(370'000)).value == Approx(10e-6 + 370'000 / 4e9));
}

TEST_CASE("more bytes never take less time, whatever was measured") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Noise noise(seed);
    std::vector<SweepPoint> points = doubling(3, 30, &noise);
    // A protocol that starts too early: four sizes that take half as long as the size before.
    for (std::size_t i = 12; i < 16; ++i) points[i].time = 0.5 * points[11].time;
    const SizeFit fit = fit_sizes(points);
    Seconds before{0};
    for (double bytes = 1; bytes < 1e11; bytes *= 1.07) {
      const Seconds t = fit.time(Bytes(static_cast<std::int64_t>(bytes)));
      CHECK(t >= before);
      before = t;
    }
  }
}

TEST_CASE("the interval holds four points of five") {
  Noise noise(5);
  const SizeFit fit = fit_sizes(doubling(3, 30, &noise));
  int inside = 0;
  for (const SweepPoint& p : doubling(3, 30, &noise)) {  // other draws than the fit saw
    const double ratio = p.time / fit.time(p.bytes);
    inside += ratio >= fit.low && ratio <= fit.high;
  }
  CHECK(inside >= 17);  // 28 x 0.8 = 22.4, standard deviation 2.1
}

TEST_CASE("few points: one is a time, two are a line, and nothing is negative") {
  const SizeFit one = fit_sizes({{Bytes(1 << 20), Seconds(1e-3), 1}});
  CHECK(one.time(Bytes(1 << 20)).value == Approx(1e-3));

  // Through (1 MiB, 2 ms) and (4 MiB, 4 ms) goes alpha = 4/3 ms; through (1 MiB, 1 ms) and
  // (4 MiB, 5 ms) it would be -1/3 ms: held at zero.
  const auto mib = [](std::int64_t n, double ms) {
    return SweepPoint{Bytes(n << 20), Seconds(ms * 1e-3), 1};
  };
  CHECK(fit_sizes({mib(1, 2), mib(4, 4)}).regimes.front().alpha.value == Approx(4e-3 / 3));
  CHECK(fit_sizes({mib(1, 1), mib(4, 5)}).regimes.front().alpha.value == 0);
}

TEST_CASE("a fifth of wild samples does not move a regression") {
  // y = 3 + 2 x; every fifth y is ten times too large.
  Eigen::MatrixXd a(30, 2);
  Eigen::VectorXd b(30);
  for (Eigen::Index i = 0; i < 30; ++i) {
    const auto x = static_cast<double>(i);
    a.row(i) << 1, x;
    b(i) = (3 + 2 * x) * (i % 5 == 0 ? 10 : 1);
  }
  const RobustFit fit = huber_regression(a, b);
  CHECK(fit.x(0) == Approx(3).epsilon(0.05));
  CHECK(fit.x(1) == Approx(2).epsilon(0.05));
}

TEST_CASE("points of both placements and of several runs are samples of one sweep") {
  Measurement m;
  m.bench = "collective";
  m.quantity = "time_s";
  m.value = 1e-3;
  m.sizes = {{"bytes", 1024}, {"ranks", 8}};
  m.labels = {{"collective", "all_reduce"}, {"placement", "in_place"}};
  Measurement other = m;
  other.labels["placement"] = "out_of_place";
  Measurement wider = m;
  wider.sizes["ranks"] = 16;
  Measurement rate = m;  // 1 MB in 1 ms
  rate.sizes["bytes"] = 1'000'000;
  rate.quantity = "bytes_per_s";
  rate.value = 1e9;
  const auto sweeps = sweeps_of({m, wider, other, rate});
  REQUIRE(sweeps.size() == 2);
  CHECK(sweeps.at(0).points.size() == 3);
  CHECK(sweeps.at(0).points.back().time.value == Approx(1e-3));
  CHECK(sweeps.at(0).distinct_sizes().size() == 2);
}
