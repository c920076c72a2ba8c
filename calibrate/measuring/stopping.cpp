#include "calibrate/measuring/stopping.hpp"

#include <algorithm>
#include <cmath>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr double iqr_of_a_normal = 1.3489795;  // 2 * 0.67448975, the 75 % point of the normal
constexpr double root_half_pi = 1.2533141;

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Centre centre(std::vector<double> samples) {
  require(!samples.empty(), "a median needs at least one sample");
  std::sort(samples.begin(), samples.end());
  const double median = quantile(samples, 0.5);
  const double range = quantile(samples, 0.75) - quantile(samples, 0.25);
  return {median, median > 0 ? range / median : 0};
}

double median_error(const std::vector<double>& samples) {
  const double sigma = centre(samples).spread / iqr_of_a_normal;
  return root_half_pi * sigma / std::sqrt(static_cast<double>(samples.size()));
}

bool known_well(const StoppingRule& rule, const std::vector<double>& samples, Seconds busy) {
  const auto n = static_cast<int>(samples.size());
  if (n >= rule.max_samples) return true;
  if (n < rule.min_samples || busy < rule.min_busy) return false;
  return median_error(samples) <= rule.max_error;
}

}  // namespace shardwise
