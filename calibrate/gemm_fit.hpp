// GemmFit: the constants of the predictor's own model of matrix products from measured times
// (simulator/costs/gemm_model.hpp).
//
// The model is the caller's: a GemmTimer says what it gives for some constants, so that nothing is
// fitted to another formula than the one that forecasts. Fitted are, as far as the points tell:
//
//   tiles           chosen from `tile_candidates`, one after the other, while each further one
//                   lowers the cost by more than the information criterion's price, 2 ln(n)
//   issue_fraction, sustained_fraction by format; start; ramp_bytes; memory_fraction;
//   wave_rounding; the rate of each tile relative to the best
//
// Robust: Levenberg-Marquardt on ln(model / measured) over the logarithms of the constants, points
// weighted as Huber does (robust_regression.hpp). A constant that no point depends on stays as it
// was. Every fraction ends at 1, the datasheet; where the fit wants more, `notes` say so.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/measurement.hpp"
#include "catalog/profile.hpp"

namespace shardwise {

struct GemmPoint {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  DType dtype = DType::bf16;
  bool accumulate = false;  // C is fp32 and added to
  Seconds time;
};

// What the model says for the points with these constants.
using GemmTimer = std::function<std::vector<Seconds>(const GemmCalibration& constants,
                                                     const std::vector<GemmPoint>& points)>;

// The residual over shapes: measured / fitted in one cell of the plane (m n, k).
struct GemmResidual {
  double log2_mn = 0, log2_k = 0;  // lower corner; a cell spans 4 octaves of m n and 2 of k
  int points = 0;
  double ratio = 1;   // median of measured / fitted
  double spread = 0;  // interquartile range over the median
};

struct GemmFit {
  GemmCalibration constants;
  double low = 1, high = 1;  // measured / fitted at the 10th and 90th of 100 points
  double noise = 0;          // robust standard deviation of ln(measured / fitted)
  std::vector<GemmResidual> surface;
  std::vector<std::string> notes;
};

// The cells whose median lies more than `beyond` off the model, a line each, the farthest first:
// where shapes are that the tiles and waves do not explain.
std::vector<std::string> surface_lines(const std::vector<GemmResidual>& surface,
                                       double beyond = 0.05);

inline constexpr std::array<GemmTile, 8> tile_candidates{{{256, 256, 1, 1},
                                                          {256, 192, 1, 1},
                                                          {256, 128, 1, 1},
                                                          {192, 128, 1, 1},
                                                          {128, 128, 1, 1},
                                                          {128, 96, 1, 1},
                                                          {128, 64, 1, 1},
                                                          {64, 64, 1, 1}}};

// The points of a log that can be fitted: those with a shape, a format that we know and a mean, a
// median or a sustained rate. Products with an epilogue or of groups are left out. Of one product
// in one file a single statistic counts (sustained, else median, else mean), and equal times once.
std::vector<GemmPoint> gemm_points(const std::vector<Measurement>& measurements);

inline constexpr std::size_t least_gemm_points = 12;

// `start` holds the family's constants. REQUIRES at least least_gemm_points points.
GemmFit fit_gemm(const std::vector<GemmPoint>& points, const GemmCalibration& start,
                 const GemmTimer& timer);

}  // namespace shardwise
