#include "calibrate/robust_regression.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <vector>

#include "calibrate/median.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr int damped_rounds = 10, huber_rounds = 20;
constexpr double least_scale = 1e-9;

// Weighted least squares over the columns that `used` keeps.
Eigen::VectorXd solve(const Eigen::MatrixXd& a, const Eigen::VectorXd& b, const Eigen::VectorXd& w,
                      const std::vector<bool>& used) {
  Eigen::MatrixXd normal = a.transpose() * w.asDiagonal() * a;
  Eigen::VectorXd right = a.transpose() * w.cwiseProduct(b);
  for (Eigen::Index c = 0; c < a.cols(); ++c) {
    if (used[static_cast<std::size_t>(c)]) continue;
    normal.row(c).setZero();
    normal.col(c).setZero();
    normal(c, c) = 1;
    right(c) = 0;
  }
  // Columns of very different size (seconds beside seconds per byte) are brought to one.
  const Eigen::VectorXd size = normal.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
  const Eigen::MatrixXd scaled = size.asDiagonal() * normal * size.asDiagonal();
  return size.cwiseProduct(scaled.ldlt().solve(size.cwiseProduct(right)));
}

RobustFit iterate(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                  const std::vector<bool>& used) {
  RobustFit fit;
  Eigen::VectorXd w = Eigen::VectorXd::Ones(a.rows());
  for (int round = 0; round < damped_rounds + huber_rounds; ++round) {
    const Eigen::VectorXd before = fit.x;
    fit.x = solve(a, b, w, used);
    fit.residuals = a * fit.x - b;
    fit.scale = std::max(least_scale, robust_scale(fit.residuals));
    const double limit = (round < damped_rounds ? 0.1 : huber_tuning) * fit.scale;
    for (Eigen::Index i = 0; i < w.size(); ++i)
      w(i) = std::min(1.0, limit / std::max(1e-300, std::abs(fit.residuals(i))));
    if (round > damped_rounds && (fit.x - before).norm() <= 1e-10 * before.norm()) break;
  }
  return fit;
}

}  // namespace

double robust_scale(const Eigen::VectorXd& residuals) {
  std::vector<double> sizes(static_cast<std::size_t>(residuals.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = std::abs(residuals(static_cast<Eigen::Index>(i)));
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return 1.4826 * *middle;
}

double huber_cost(double u) {
  const double a = std::abs(u);
  return a <= huber_tuning ? a * a : huber_tuning * (2 * a - huber_tuning);
}

RobustFit huber_regression(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  require(a.rows() >= a.cols() && a.cols() > 0 && a.rows() == b.size(),
          "a regression has as many samples as unknowns");
  std::vector<bool> used(static_cast<std::size_t>(a.cols()), true);
  RobustFit fit = iterate(a, b, used);
  for (Eigen::Index tries = 0; tries < a.cols(); ++tries) {
    Eigen::Index lowest = 0;
    if (fit.x.minCoeff(&lowest) >= 0) break;
    used[static_cast<std::size_t>(lowest)] = false;
    fit = iterate(a, b, used);
  }
  return fit;
}

}  // namespace shardwise
