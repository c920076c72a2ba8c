// SizeFit: time over message size as alpha + bytes / beta, by regimes.
//
// A library changes its protocol and algorithm with the size (NCCL: LL, LL128, Simple; ring, tree,
// NVLS), and each has its own latency and bandwidth. The sizes are cut into at most four regimes so
// that
//
//   sum over regimes  sum_i rho((alpha + bytes_i / beta - t_i) / t_i / s)  + 3 ln(n)
//
// is least (rho: Huber; s: the noise, from samples of one size or from neighbouring sizes; 3 ln(n):
// the information criterion's price of alpha, beta and a border). Each regime is a Huber
// regression (robust_regression.hpp) with alpha, 1/beta >= 0.
//
// Monotone: what a regime says is never below what the regimes before it say at their ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/sweep.hpp"

namespace shardwise {

struct Regime {
  Bytes from, to;  // the smallest and the largest size that it was fitted on
  Seconds alpha;
  double seconds_per_byte = 0;  // 1 / beta; 0: the time does not grow
  int points = 0;
  std::optional<BytesPerSecond> bandwidth() const {
    if (seconds_per_byte <= 0) return std::nullopt;
    return BytesPerSecond(1 / seconds_per_byte);
  }
  Seconds at(Bytes size) const {
    return alpha + Seconds(seconds_per_byte * static_cast<double>(size.value));
  }
};

struct SizeFit {
  std::vector<Regime> regimes;  // ascending
  // Measured / fitted at the 10th and 90th of 100 points: an 80 % interval around time().
  double low = 1, high = 1;
  double noise = 0;  // s above

  Seconds time(Bytes size) const;
};

// REQUIRES at least one point. One or two sizes give one regime.
SizeFit fit_sizes(const std::vector<SweepPoint>& points);

// |fitted / measured - 1| at each size when that size is left out of the fit; nothing for fewer
// than three sizes.
struct LeftOut {
  Bytes bytes;
  Seconds measured, fitted;
  double error() const;
};
std::vector<LeftOut> leave_one_size_out(const Sweep& sweep);

}  // namespace shardwise
