#include "calibrate/size_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/median.hpp"
#include "calibrate/robust_regression.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_regimes = 4;
constexpr double least_noise = 0.005;  // of published times, which are rounded to 3 or 4 digits

// The points of one size: [begin, end).
struct SizeGroup {
  Bytes bytes;
  std::size_t begin = 0, end = 0;
  double median_s = 0;
};

std::vector<SizeGroup> groups_of(const std::vector<SweepPoint>& points) {
  std::vector<SizeGroup> groups;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (groups.empty() || groups.back().bytes != points[i].bytes)
      groups.push_back({points[i].bytes, i, i, 0});
    groups.back().end = i + 1;
  }
  for (SizeGroup& g : groups) {
    std::vector<double> times;
    for (std::size_t i = g.begin; i < g.end; ++i) times.push_back(points[i].time.value);
    g.median_s = median(times);
  }
  return groups;
}

double scale_of(std::vector<double> deviations) { return 1.4826 * median(std::move(deviations)); }

// Relative standard deviation of one point. With three samples of a size and more: around their
// median. Else: how far a time lies from the mean of its neighbours' logarithms, whose variance is
// 1.5 times that of one.
double noise_of(const std::vector<SweepPoint>& points, const std::vector<SizeGroup>& groups) {
  std::vector<double> deviations;
  for (const SizeGroup& g : groups)
    if (g.end - g.begin >= 3)
      for (std::size_t i = g.begin; i < g.end; ++i)
        deviations.push_back(std::abs(points[i].time.value / g.median_s - 1));
  if (deviations.size() < 6) {
    deviations.clear();
    for (std::size_t i = 1; i + 1 < groups.size(); ++i)
      deviations.push_back(
          std::abs(std::log(groups[i].median_s) -
                   0.5 * std::log(groups[i - 1].median_s * groups[i + 1].median_s)) /
          std::sqrt(1.5));
  }
  return deviations.empty() ? least_noise : std::max(least_noise, scale_of(deviations));
}

struct FittedRegime {
  Regime regime;
  double cost = 0;
};

// One line over the groups [first, last].
FittedRegime fit_regime(const std::vector<SweepPoint>& points, const SizeGroup& first,
                        const SizeGroup& last, double noise) {
  const auto n = static_cast<Eigen::Index>(last.end - first.begin);
  const bool flat = first.bytes == last.bytes;
  Eigen::MatrixXd a(n, flat ? 1 : 2);
  for (Eigen::Index i = 0; i < n; ++i) {
    const SweepPoint& p = points[first.begin + static_cast<std::size_t>(i)];
    a(i, 0) = 1 / p.time.value;
    if (!flat) a(i, 1) = static_cast<double>(p.bytes.value) / p.time.value;
  }
  const RobustFit fit = huber_regression(a, Eigen::VectorXd::Ones(n));
  FittedRegime found;
  found.regime = {first.bytes, last.bytes, Seconds(fit.x(0)), flat ? 0 : fit.x(1),
                  static_cast<int>(n)};
  for (Eigen::Index i = 0; i < n; ++i) found.cost += huber_cost(fit.residuals(i) / noise);
  return found;
}

// The best cut by dynamic programming over the distinct sizes: best[r][j] ends regime r at group j.
class Cut {
 public:
  Cut(const std::vector<SweepPoint>& points, const std::vector<SizeGroup>& groups, double noise)
      : points_(points), groups_(groups), noise_(noise), least_(groups.size() >= 6 ? 3 : 2) {}

  std::vector<Regime> regimes() {
    const std::size_t n = groups_.size();
    if (n < 2 * least_)
      return {fit_regime(points_, groups_.front(), groups_.back(), noise_).regime};
    fit_all();
    const double price = 3 * std::log(static_cast<double>(points_.size()));
    constexpr double none = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> best(most_regimes, std::vector<double>(n, none));
    std::vector<std::vector<std::size_t>> start(most_regimes, std::vector<std::size_t>(n, 0));
    for (std::size_t j = least_ - 1; j < n; ++j) best[0][j] = all_[0][j].cost;
    for (std::size_t r = 1; r < most_regimes; ++r)
      for (std::size_t j = (r + 1) * least_ - 1; j < n; ++j)
        for (std::size_t i = r * least_; i + least_ <= j + 1; ++i) {
          const double cost = best[r - 1][i - 1] + all_[i][j].cost + price;
          if (cost < best[r][j]) {
            best[r][j] = cost;
            start[r][j] = i;
          }
        }
    std::size_t used = 0;
    for (std::size_t r = 1; r < most_regimes; ++r)
      if (best[r][n - 1] < best[used][n - 1]) used = r;
    return chosen(start, used);
  }

 private:
  void fit_all() {
    const std::size_t n = groups_.size();
    all_.assign(n, std::vector<FittedRegime>(n));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = i + least_ - 1; j < n; ++j)
        all_[i][j] = fit_regime(points_, groups_[i], groups_[j], noise_);
  }

  std::vector<Regime> chosen(const std::vector<std::vector<std::size_t>>& start,
                             std::size_t used) const {
    std::vector<Regime> regimes;
    std::size_t end = groups_.size() - 1;
    for (std::size_t r = used + 1; r-- > 0;) {
      const std::size_t begin = r == 0 ? 0 : start[r][end];
      regimes.insert(regimes.begin(), all_[begin][end].regime);
      if (begin > 0) end = begin - 1;
    }
    return regimes;
  }

  const std::vector<SweepPoint>& points_;
  const std::vector<SizeGroup>& groups_;
  double noise_;
  std::size_t least_;  // sizes of a regime
  std::vector<std::vector<FittedRegime>> all_;
};

// The border between two regimes lies at the geometric middle of the sizes beside it.
Bytes border(const Regime& before, const Regime& next) {
  return Bytes(static_cast<std::int64_t>(std::sqrt(static_cast<double>(before.to.value)) *
                                         std::sqrt(static_cast<double>(next.from.value))));
}

}  // namespace

Seconds SizeFit::time(Bytes size) const {
  require(!regimes.empty(), "a fit has a regime");
  Seconds t{0};
  for (std::size_t i = 0; i < regimes.size(); ++i) {
    if (i + 1 == regimes.size()) return std::max(t, regimes[i].at(size));
    const Bytes end = border(regimes[i], regimes[i + 1]);
    t = std::max(t, regimes[i].at(std::min(size, end)));
    if (size < end) break;
  }
  return t;
}

SizeFit fit_sizes(const std::vector<SweepPoint>& points) {
  require(!points.empty(), "a fit has points");
  const std::vector<SizeGroup> groups = groups_of(points);
  SizeFit fit;
  fit.noise = noise_of(points, groups);
  fit.regimes = Cut(points, groups, fit.noise).regimes();
  std::vector<double> ratios;
  for (const SweepPoint& p : points) ratios.push_back(p.time / fit.time(p.bytes));
  fit.low = std::min(1.0, quantile(ratios, 0.1));
  fit.high = std::max(1.0, quantile(ratios, 0.9));
  return fit;
}

double LeftOut::error() const { return std::abs(fitted / measured - 1); }

std::vector<LeftOut> leave_one_size_out(const Sweep& sweep) {
  const std::vector<Bytes> sizes = sweep.distinct_sizes();
  if (sizes.size() < 3) return {};
  std::vector<LeftOut> left;
  for (const Bytes size : sizes) {
    std::vector<SweepPoint> kept;
    std::vector<double> out;
    for (const SweepPoint& p : sweep.points) {
      if (p.bytes == size)
        out.push_back(p.time.value);
      else
        kept.push_back(p);
    }
    left.push_back({size, Seconds(median(out)), fit_sizes(kept).time(size)});
  }
  return left;
}

}  // namespace shardwise
