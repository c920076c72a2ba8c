#include "calibrate/median.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "catalog/require.hpp"

namespace shardwise {

double quantile(std::vector<double> samples, double q) {
  require(!samples.empty() && q >= 0 && q <= 1, "a quantile is one of some samples");
  std::sort(samples.begin(), samples.end());
  const double at = q * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  const double share = at - static_cast<double>(below);
  return samples[below] + share * (samples[above] - samples[below]);
}

double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }

double relative_spread(const std::vector<double>& samples) {
  const double middle = median(samples);
  if (middle == 0) return 0;
  return (quantile(samples, 0.75) - quantile(samples, 0.25)) / std::abs(middle);
}

}  // namespace shardwise
