// RobustRegression: linear least squares that a few wild samples do not move.
//
// Huber's M-estimator by iteratively re-weighted least squares (P. J. Huber, Robust Estimation of a
// Location Parameter, 1964; tuning constant 1.345 for 95 % efficiency under normal noise):
//
//   minimise sum_i rho(r_i / s),   r = A x - b,   rho(u) = u^2/2 inside |u| <= 1.345, else linear
//   weight_i = min(1, 1.345 s / |r_i|),   s = 1.4826 x median |r_i|   (refreshed every round)
//
// Rows are expected to be scaled so that r is a relative error.
#pragma once

#include <Eigen/Core>

namespace shardwise {

inline constexpr double huber_tuning = 1.345;

// 2 rho(u): what a residual of u scales costs.
double huber_cost(double u);

struct RobustFit {
  Eigen::VectorXd x;
  Eigen::VectorXd residuals;  // A x - b
  double scale = 0;           // s: a standard deviation under normal noise
};

// REQUIRES at least as many rows as columns. Starts from least absolute deviations approximated by
// a heavily damped first round, so that a fifth of the samples may be wild. Columns whose
// factor would be negative are left out (x = 0 there): times and rates are not negative.
RobustFit huber_regression(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

// 1.4826 x median |r|.
double robust_scale(const Eigen::VectorXd& residuals);

}  // namespace shardwise
