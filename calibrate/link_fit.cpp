#include "calibrate/link_fit.hpp"

#include <algorithm>
#include <cmath>

#include "calibrate/median.hpp"
#include "calibrate/robust_regression.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

// The noise that the cost is measured in: of one run of nccl-tests.
constexpr double run_noise = 0.05;
constexpr int most_rounds = 6, golden_steps = 24;

std::vector<double> deviations(const std::vector<LinkPoint>& points, const ConstantValues& values,
                               const LinkTimer& timer) {
  const std::vector<Seconds> model = timer(values, points);
  std::vector<double> out(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) out[i] = std::log(model[i] / points[i].time);
  return out;
}

double cost_of(const std::vector<double>& deviations) {
  double sum = 0;
  for (const double d : deviations) sum += huber_cost(d / run_noise);
  return sum;
}

double middle_error(const std::vector<double>& deviations) {
  std::vector<double> errors;
  for (const double d : deviations) errors.push_back(std::abs(std::exp(d) - 1));
  return median(errors);
}

class Search {
 public:
  Search(const std::vector<LinkPoint>& points, const LinkTimer& timer)
      : points_(points), timer_(timer) {}

  double cost(ConstantValues values, const std::string& key, double value) const {
    values[key] = value;
    return cost_of(deviations(points_, values, timer_));
  }

  // Golden section over the logarithm, a factor of three either way, within the bounds.
  double best_value(const ConstantValues& values, const std::string& key) const {
    const DeviceConstant* bounds = device_constant(key);
    require(bounds != nullptr, "a fit moves constants that there are");
    const double now = std::max(values.at(key), 1e-6);
    double low = std::log(std::max(bounds->low, now / 3) + 1e-9);
    double high = std::log(std::min(bounds->high, now * 3));
    // Where another algorithm is faster a constant does not matter and the cost is flat: the best
    // of a grid says between which values to search.
    constexpr int steps = 24;
    const double width = (high - low) / steps;
    int best = 0;
    double least = cost(values, key, std::exp(low));
    for (int i = 1; i <= steps; ++i)
      if (const double c = cost(values, key, std::exp(low + i * width)); c < least) {
        least = c;
        best = i;
      }
    const double from = low;
    low = from + std::max(0, best - 1) * width;
    high = from + std::min(steps, best + 1) * width;
    const double part = (std::sqrt(5.0) - 1) / 2;
    double a = high - part * (high - low), b = low + part * (high - low);
    double cost_a = cost(values, key, std::exp(a)), cost_b = cost(values, key, std::exp(b));
    for (int i = 0; i < golden_steps; ++i) {
      if (cost_a <= cost_b) {
        high = b;
        b = a;
        cost_b = cost_a;
        a = high - part * (high - low);
        cost_a = cost(values, key, std::exp(a));
      } else {
        low = a;
        a = b;
        cost_a = cost_b;
        b = low + part * (high - low);
        cost_b = cost(values, key, std::exp(b));
      }
    }
    const double found = std::exp(cost_a <= cost_b ? a : b);
    return cost(values, key, found) < cost(values, key, values.at(key)) ? found : values.at(key);
  }

  // Indices of the points that a tenth less of the constant changes by over a hundredth. Less, as a
  // constant may stand at its upper bound.
  std::vector<std::size_t> touched(const ConstantValues& values, const std::string& key) const {
    ConstantValues moved = values;
    moved[key] *= 0.9;
    const std::vector<double> with = deviations(points_, values, timer_),
                              without = deviations(points_, moved, timer_);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < with.size(); ++i)
      if (std::abs(with[i] - without[i]) > 0.01) found.push_back(i);
    return found;
  }

 private:
  const std::vector<LinkPoint>& points_;
  const LinkTimer& timer_;
};

}  // namespace

std::vector<LinkPoint> link_points(const std::vector<Sweep>& sweeps) {
  std::vector<LinkPoint> points;
  for (const Sweep& s : sweeps) {
    const auto collective = s.labels.find("collective");
    const auto ranks = s.sizes.find("ranks");
    const auto nodes = s.sizes.find("nodes");
    const bool one_node = nodes == s.sizes.end() || nodes->second == 1;
    if (s.bench != "collective" || !one_node || ranks == s.sizes.end() || ranks->second < 2)
      continue;
    for (const SweepPoint& p : s.points)
      points.push_back({collective->second, p.bytes, static_cast<int>(ranks->second), p.time});
  }
  return points;
}

LinkFit fit_links(const std::vector<LinkPoint>& points, const ConstantValues& start,
                  const LinkTimer& timer) {
  require(!points.empty(), "a fit has points");
  const Search search(points, timer);
  LinkFit fit;
  fit.before = middle_error(deviations(points, start, timer));
  ConstantValues values = start;
  for (int round = 0; round < most_rounds; ++round) {
    bool moved = false;
    for (const auto& [key, unused] : start) {
      if (search.touched(values, key).empty()) continue;
      const double value = search.best_value(values, key);
      moved = moved || std::abs(value / values.at(key) - 1) > 1e-3;
      values[key] = value;
    }
    if (!moved) break;
  }
  const std::vector<double> left = deviations(points, values, timer);
  fit.after = middle_error(left);
  for (const auto& [key, value] : values) {
    const auto touched = search.touched(values, key);
    if (touched.size() < 2) continue;
    std::vector<double> ratios;
    for (const std::size_t i : touched) ratios.push_back(std::exp(left[i]));
    const double low = std::min(1.0, quantile(ratios, 0.1)),
                 high = std::max(1.0, quantile(ratios, 0.9));
    const double top = device_constant(key)->high;
    fit.constants[key] = {value, value * low, std::min(top, value * high),
                          static_cast<int>(touched.size())};
    if (value >= 0.999 * top)
      fit.notes.push_back(key + ": the points ask for more than the line rate");
  }
  return fit;
}

}  // namespace shardwise
