// Samples as a GPU gives them: 5 % normal noise, and 3 % of the samples wild (1.5 to 10 times too
// slow), drawn by arithmetic of our own so that every compiler draws the same.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "calibrate/median.hpp"
#include "catalog/units.hpp"

namespace shardwise::noisy_samples {

class Noise {
 public:
  explicit Noise(unsigned seed) : generator_(seed) {}

  double factor() {
    constexpr double noise = 0.05, wild = 0.03, turn = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(uniform() + 1e-300));
    const double normal = 1 + noise * radius * std::cos(turn * uniform());
    return uniform() < wild ? normal * (1.5 + 8.5 * uniform()) : normal;
  }
  // What a bench reports: the median of 25 samples.
  Seconds measured(Seconds truth) {
    std::vector<double> samples;
    for (int i = 0; i < 25; ++i) samples.push_back(truth.value * factor());
    return Seconds(median(samples));
  }

 private:
  double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }
  std::mt19937_64 generator_;
};

inline bool within(double found, double truth, double tolerance = 0.05) {
  return std::abs(found / truth - 1) <= tolerance;
}

}  // namespace shardwise::noisy_samples
