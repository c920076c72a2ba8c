#include "calibrate/gemm_fit.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "calibrate/median.hpp"
#include "calibrate/robust_regression.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_tiles = 4;
constexpr int screening_rounds = 6, fitting_rounds = 40;

// One constant as the logarithm that is fitted.
struct Knob {
  std::function<double&(GemmCalibration&)> of;
  double low = 1e-3, high = 1;
};

std::vector<Knob> knobs_of(const std::set<DType>& dtypes, std::size_t tiles) {
  std::vector<Knob> knobs;
  for (const DType d : dtypes) {
    const auto i = static_cast<std::size_t>(d);
    knobs.push_back({[i](GemmCalibration& c) -> double& { return c.issue_fraction[i]; }});
    knobs.push_back({[i](GemmCalibration& c) -> double& { return c.sustained_fraction[i]; }});
  }
  knobs.push_back({[](GemmCalibration& c) -> double& { return c.start.value; }, 1e-7, 1e-3});
  knobs.push_back({[](GemmCalibration& c) -> double& { return c.ramp_bytes; }, 1, 1e5});
  knobs.push_back({[](GemmCalibration& c) -> double& { return c.memory_fraction; }});
  knobs.push_back({[](GemmCalibration& c) -> double& { return c.wave_rounding; }, 0.02, 1});
  for (std::size_t t = 1; t < tiles; ++t)
    knobs.push_back({[t](GemmCalibration& c) -> double& { return c.tiles[t].rate; }});
  return knobs;
}

class Fitter {
 public:
  Fitter(const std::vector<GemmPoint>& points, const GemmTimer& timer)
      : points_(points), timer_(timer) {
    for (const GemmPoint& p : points) dtypes_.insert(p.dtype);
  }

  struct State {
    GemmCalibration constants;
    Eigen::VectorXd residuals;  // ln(model / measured)
    double scale = 0;
  };

  Eigen::VectorXd residuals(const GemmCalibration& c) const {
    const std::vector<Seconds> model = timer_(c, points_);
    Eigen::VectorXd r(static_cast<Eigen::Index>(points_.size()));
    for (std::size_t i = 0; i < points_.size(); ++i)
      r(static_cast<Eigen::Index>(i)) = std::log(model[i] / points_[i].time);
    return r;
  }

  // Sum of Huber's rho at the given scale.
  static double cost(const Eigen::VectorXd& r, double scale) {
    double sum = 0;
    for (const double v : r) sum += huber_cost(v / scale);
    return sum;
  }

  State descend(GemmCalibration c, int rounds) const {
    const std::vector<Knob> knobs = knobs_of(dtypes_, c.tiles.size());
    for (const Knob& k : knobs) k.of(c) = std::clamp(k.of(c), k.low, k.high);
    State s{c, residuals(c), 0};
    double damping = 1e-2;
    for (int round = 0; round < rounds && damping < 1e6; ++round) {
      s.scale = std::max(1e-4, robust_scale(s.residuals));
      const GemmCalibration next = step(s, knobs, damping);
      const Eigen::VectorXd r = residuals(next);
      const double before = cost(s.residuals, s.scale), after = cost(r, s.scale);
      if (after < before) {
        s.constants = next;
        s.residuals = r;
        damping = std::max(1e-6, damping / 4);
        if (before - after < 1e-6 * before) break;
      } else {
        damping *= 8;
      }
    }
    s.scale = std::max(1e-4, robust_scale(s.residuals));
    return s;
  }

 private:
  // One Levenberg-Marquardt step in the logarithms, weights as Huber's.
  GemmCalibration step(const State& s, const std::vector<Knob>& knobs, double damping) const {
    const auto n = static_cast<Eigen::Index>(points_.size());
    const auto p = static_cast<Eigen::Index>(knobs.size());
    Eigen::MatrixXd jacobian(n, p);
    for (Eigen::Index j = 0; j < p; ++j) {
      const Knob& k = knobs[static_cast<std::size_t>(j)];
      GemmCalibration moved = s.constants;
      constexpr double nudge = 0.01;
      const bool down = k.of(moved) * (1 + nudge) > k.high;
      const double h = down ? -nudge : nudge;
      k.of(moved) *= std::exp(h);
      jacobian.col(j) = (residuals(moved) - s.residuals) / h;
    }
    Eigen::VectorXd weight(n);
    for (Eigen::Index i = 0; i < n; ++i)
      weight(i) =
          std::min(1.0, huber_tuning * s.scale / std::max(1e-300, std::abs(s.residuals(i))));
    Eigen::MatrixXd normal = jacobian.transpose() * weight.asDiagonal() * jacobian;
    const Eigen::VectorXd right = jacobian.transpose() * weight.cwiseProduct(s.residuals);
    for (Eigen::Index j = 0; j < p; ++j) normal(j, j) += damping * normal(j, j) + 1e-9;
    const Eigen::VectorXd move = normal.ldlt().solve(right);
    GemmCalibration next = s.constants;
    for (Eigen::Index j = 0; j < p; ++j) {
      const Knob& k = knobs[static_cast<std::size_t>(j)];
      const double by = std::clamp(-move(j), -0.7, 0.7);
      k.of(next) = std::clamp(k.of(next) * std::exp(by), k.low, k.high);
    }
    return next;
  }

  const std::vector<GemmPoint>& points_;
  const GemmTimer& timer_;
  std::set<DType> dtypes_;
};

GemmCalibration with_tiles(const GemmCalibration& c, std::vector<GemmTile> tiles) {
  GemmCalibration changed = c;
  changed.tiles = std::move(tiles);
  return changed;
}

bool same_shape(const GemmTile& a, const GemmTile& b) { return a.m == b.m && a.n == b.n; }

// The best tile to begin with, all constants free to follow it.
Fitter::State first_tile(const Fitter& fitter, const GemmCalibration& start) {
  std::vector<Fitter::State> tried;
  for (const GemmTile& tile : tile_candidates)
    tried.push_back(fitter.descend(with_tiles(start, {tile}), screening_rounds));
  double scale = 1e300;
  for (const Fitter::State& s : tried) scale = std::min(scale, s.scale);
  std::sort(tried.begin(), tried.end(), [&](const Fitter::State& a, const Fitter::State& b) {
    return Fitter::cost(a.residuals, scale) < Fitter::cost(b.residuals, scale);
  });
  Fitter::State best = fitter.descend(tried[0].constants, fitting_rounds);
  for (std::size_t i = 1; i < 3; ++i) {
    Fitter::State other = fitter.descend(tried[i].constants, fitting_rounds);
    const double common = std::min(best.scale, other.scale);
    if (Fitter::cost(other.residuals, common) < Fitter::cost(best.residuals, common))
      best = std::move(other);
  }
  return best;
}

// Adds the tile that helps most, if any is worth its price.
bool add_tile(const Fitter& fitter, Fitter::State& best, double price) {
  std::optional<Fitter::State> better;
  double least = Fitter::cost(best.residuals, best.scale) - price;
  for (GemmTile tile : tile_candidates) {
    const auto& have = best.constants.tiles;
    if (std::any_of(have.begin(), have.end(),
                    [&](const GemmTile& t) { return same_shape(t, tile); }))
      continue;
    tile.rate = 0.85;
    std::vector<GemmTile> tiles = have;
    tiles.push_back(tile);
    Fitter::State s = fitter.descend(with_tiles(best.constants, tiles), screening_rounds);
    const double cost = Fitter::cost(s.residuals, best.scale);
    if (cost < least) {
      least = cost;
      better = std::move(s);
    }
  }
  if (!better) return false;
  best = fitter.descend(better->constants, fitting_rounds);
  return true;
}

std::vector<GemmResidual> surface_of(const std::vector<GemmPoint>& points,
                                     const Eigen::VectorXd& residuals) {
  std::map<std::pair<double, double>, std::vector<double>> cells;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const GemmPoint& p = points[i];
    const double mn = std::log2(static_cast<double>(p.m)) + std::log2(static_cast<double>(p.n));
    const double k = std::log2(static_cast<double>(p.k));
    cells[{4 * std::floor(mn / 4), 2 * std::floor(k / 2)}].push_back(
        std::exp(-residuals(static_cast<Eigen::Index>(i))));
  }
  std::vector<GemmResidual> surface;
  for (const auto& [corner, ratios] : cells)
    surface.push_back({corner.first, corner.second, static_cast<int>(ratios.size()), median(ratios),
                       relative_spread(ratios)});
  return surface;
}

std::string power_of_two(double exponent) {
  return "2^" + std::to_string(static_cast<int>(exponent));
}

// Fractions that stand at the datasheet, and what the points ask beyond it.
void note_limits(const std::vector<GemmPoint>& points, const Eigen::VectorXd& residuals,
                 GemmFit& fit) {
  for (const DTypeRow& row : dtype_rows) {
    std::vector<double> beyond;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (points[i].dtype == row.dtype)
        beyond.push_back(std::exp(-residuals(static_cast<Eigen::Index>(i))));
    const double sustained = fit.constants.sustained_fraction[static_cast<std::size_t>(row.dtype)];
    if (beyond.empty() || sustained < 0.999) continue;
    fit.notes.push_back(std::string(row.name) + ": as fast as the datasheet allows; the points " +
                        (median(beyond) < 0.98 ? "are faster still" : "are no faster"));
  }
}

std::optional<GemmPoint> gemm_point(const Measurement& m) {
  const auto size = [&](const char* key) {
    const auto found = m.sizes.find(key);
    return found == m.sizes.end() ? std::int64_t{0} : found->second;
  };
  const auto dtype = dtype_named(label(m, "dtype"));
  const std::string statistic = label(m, "statistic"), epilogue = label(m, "epilogue");
  const bool plain = m.bench == "gemm" && (epilogue.empty() || epilogue == "none");
  if (!plain || !dtype || statistic == "max" || statistic == "burst" || !(m.value > 0))
    return std::nullopt;
  GemmPoint p{size("m"), size("n"), size("k"), std::max<std::int64_t>(1, size("batch")),
              *dtype,    false,     Seconds(0)};
  if (p.m < 1 || p.n < 1 || p.k < 1) return std::nullopt;
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k) * static_cast<double>(p.batch);
  if (m.quantity == "time_s")
    p.time = Seconds(m.value);
  else if (m.quantity == "flops_per_s")
    p.time = Seconds(flops / m.value);
  else
    return std::nullopt;
  return p;
}

// What holds on, then what one slow sample cannot move.
int preference(const Measurement& m) {
  const std::string statistic = label(m, "statistic");
  return statistic == "sustained" ? 0 : statistic == "mean" ? 2 : 1;
}

// "finder.txt" of "finder.txt:12".
std::string file_of(const Measurement& m) { return m.source.substr(0, m.source.rfind(':')); }

// A log may tell one measured product several times: by its mean and its median, and once more
// where it sums up.
struct ToldOfShape {
  int preference;
  std::vector<std::size_t> points;
};

}  // namespace

std::vector<GemmPoint> gemm_points(const std::vector<Measurement>& measurements) {
  std::vector<GemmPoint> all;
  std::map<std::tuple<std::string, DType, std::array<std::int64_t, 4>>, ToldOfShape> told;
  for (const Measurement& m : measurements) {
    const auto p = gemm_point(m);
    if (!p) continue;
    const std::array<std::int64_t, 4> sizes{p->m, p->n, p->k, p->batch};
    const int rank = preference(m);
    ToldOfShape& shape =
        told.try_emplace({file_of(m), p->dtype, sizes}, ToldOfShape{rank, {}}).first->second;
    if (rank < shape.preference) shape = {rank, {}};
    const bool again = std::any_of(shape.points.begin(), shape.points.end(),
                                   [&](std::size_t i) { return all[i].time == p->time; });
    if (rank == shape.preference && !again) shape.points.push_back(all.size());
    all.push_back(*p);
  }
  std::vector<std::size_t> kept;
  for (const auto& [shape, t] : told) kept.insert(kept.end(), t.points.begin(), t.points.end());
  std::sort(kept.begin(), kept.end());
  std::vector<GemmPoint> points;
  for (const std::size_t i : kept) points.push_back(all[i]);
  return points;
}

GemmFit fit_gemm(const std::vector<GemmPoint>& points, const GemmCalibration& start,
                 const GemmTimer& timer) {
  require(points.size() >= least_gemm_points, "a fit of products has enough points");
  const Fitter fitter(points, timer);
  Fitter::State best = first_tile(fitter, start);
  const double price = 2 * std::log(static_cast<double>(points.size()));
  while (best.constants.tiles.size() < most_tiles && add_tile(fitter, best, price)) {
  }
  GemmFit fit;
  fit.constants = best.constants;
  fit.noise = best.scale;
  std::vector<double> ratios;
  for (const double r : best.residuals) ratios.push_back(std::exp(-r));
  fit.low = std::min(1.0, quantile(ratios, 0.1));
  fit.high = std::max(1.0, quantile(ratios, 0.9));
  fit.surface = surface_of(points, best.residuals);
  note_limits(points, best.residuals, fit);
  return fit;
}

std::vector<std::string> surface_lines(const std::vector<GemmResidual>& surface, double beyond) {
  std::vector<GemmResidual> off;
  for (const GemmResidual& cell : surface)
    if (std::abs(cell.ratio - 1) > beyond) off.push_back(cell);
  std::stable_sort(off.begin(), off.end(), [](const GemmResidual& a, const GemmResidual& b) {
    return std::abs(std::log(a.ratio)) > std::abs(std::log(b.ratio));
  });
  std::vector<std::string> lines;
  for (const GemmResidual& cell : off) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2f", cell.ratio);
    lines.push_back("gemm: m n from " + power_of_two(cell.log2_mn) + " to " +
                    power_of_two(cell.log2_mn + 4) + ", k from " + power_of_two(cell.log2_k) +
                    " to " + power_of_two(cell.log2_k + 2) + ": " + ratio +
                    " of the fitted time (" + std::to_string(cell.points) +
                    (cell.points == 1 ? " point)" : " points)"));
  }
  return lines;
}

}  // namespace shardwise
