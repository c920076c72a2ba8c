#include "calibrate/memory_fit.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/measuring/kernel_traffic.hpp"
#include "calibrate/median.hpp"
#include "calibrate/robust_regression.hpp"

namespace shardwise {
namespace {

double size(const Measurement& m, const char* key) {
  const auto found = m.sizes.find(key);
  return found == m.sizes.end() ? 0 : static_cast<double>(found->second);
}

std::optional<MovedBytes> copied(const Measurement& m) {
  if (m.bench != "copy" || label(m, "direction") != "device_local") return std::nullopt;
  if (m.quantity == "bytes_per_s" && label(m, "test").empty())  // read and written, per second
    return MovedBytes{Bytes(1'000'000'000), Bytes(1'000'000'000) / BytesPerSecond(m.value)};
  if (m.quantity != "time_s" || size(m, "bytes") <= 0) return std::nullopt;
  return MovedBytes{ceil_bytes(2 * size(m, "bytes")), Seconds(m.value)};
}

std::optional<MovedBytes> by_kernel(const Measurement& m) {
  if (m.bench != "memory_kernel" || m.quantity != "time_s") return std::nullopt;
  // Per tensor Adam starts as many kernels; NF4's lookups are no plain stream.
  if (label(m, "form") == "per_tensor" || label(m, "kernel") == "nf4_dequantise")
    return std::nullopt;
  const auto traffic = kernel_traffic(m.sizes, m.labels);
  if (!traffic) return std::nullopt;
  return MovedBytes{traffic->moved, Seconds(m.value), traffic->access};
}

struct Line {
  Seconds start;
  double seconds_per_byte = 0;
  double low = 1, high = 1;  // of measured / fitted
  bool starts = false;       // small sizes tell the start
};

Line line_through(const std::vector<MovedBytes>& points) {
  const auto n = static_cast<Eigen::Index>(points.size());
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(),
      [](const MovedBytes& a, const MovedBytes& b) { return a.moved < b.moved; });
  // Two unknowns need sizes that lie apart.
  Line line;
  line.starts = n >= 3 && most->moved.value >= 8 * least->moved.value;
  Eigen::MatrixXd a(n, line.starts ? 2 : 1);
  for (Eigen::Index i = 0; i < n; ++i) {
    const MovedBytes& p = points[static_cast<std::size_t>(i)];
    a(i, 0) = static_cast<double>(p.moved.value) / p.time.value;
    if (line.starts) a(i, 1) = 1 / p.time.value;
  }
  const RobustFit fit = huber_regression(a, Eigen::VectorXd::Ones(n));
  line.seconds_per_byte = fit.x(0);
  line.start = Seconds(line.starts ? fit.x(1) : 0);
  std::vector<double> ratios;
  for (const double r : fit.residuals) ratios.push_back(1 / (1 + r));
  line.low = std::min(1.0, quantile(ratios, 0.1));
  line.high = std::max(1.0, quantile(ratios, 0.9));
  return line;
}

}  // namespace

std::vector<MovedBytes> moved_bytes(const std::vector<Measurement>& measurements) {
  std::vector<MovedBytes> points;
  for (const Measurement& m : measurements) {
    if (!(m.value > 0)) continue;
    auto p = copied(m);
    if (!p) p = by_kernel(m);
    if (p && p->moved.value > 0) points.push_back(*p);
  }
  return points;
}

std::vector<SingleElements> single_elements(const std::vector<Measurement>& measurements) {
  std::vector<SingleElements> points;
  for (const Measurement& m : measurements)
    if (m.bench == "memory_kernel" && m.quantity == "time_s" && m.value > 0 &&
        label(m, "kernel") == element_by_element && size(m, "elements") > 0)
      points.push_back({size(m, "elements"), Bytes(m.sizes.at("bytes")), Seconds(m.value)});
  return points;
}

std::optional<MeasuredConstant> fit_cycles(const std::vector<SingleElements>& points,
                                           const Gpu& gpu, BytesPerSecond streaming,
                                           Seconds start) {
  std::vector<double> cycles;
  const double per_second = gpu.sm_count * gpu.boost_clock_mhz * 1e6;
  for (const SingleElements& p : points) {
    const Seconds indexes = p.time - start;
    if (p.time < 10.0 * start || p.most_moved / streaming > 0.75 * indexes) continue;
    cycles.push_back(indexes.value * per_second / p.elements);
  }
  if (cycles.empty() || per_second <= 0) return std::nullopt;
  return MeasuredConstant{median(cycles), quantile(cycles, 0.1), quantile(cycles, 0.9),
                          static_cast<int>(cycles.size())};
}

std::map<std::string, MeasuredConstant> fit_memory(const std::vector<MovedBytes>& points,
                                                   BytesPerSecond bandwidth,
                                                   std::vector<std::string>& notes) {
  std::map<std::string, MeasuredConstant> constants;
  for (const auto& [access, key] : {std::pair{MemoryAccess::streaming, "memory.streaming_fraction"},
                                    std::pair{MemoryAccess::reduction, "memory.reduction_fraction"},
                                    std::pair{MemoryAccess::gather, "memory.gather_fraction"}}) {
    std::vector<MovedBytes> chosen;
    std::copy_if(points.begin(), points.end(), std::back_inserter(chosen),
                 [a = access](const MovedBytes& p) { return p.access == a; });
    if (chosen.empty()) continue;
    const Line line = line_through(chosen);
    if (line.seconds_per_byte <= 0) continue;
    const double fraction = 1 / line.seconds_per_byte / bandwidth.value;
    if (fraction > 1)
      notes.push_back(std::string(key) + ": faster than the datasheet's bandwidth; held at it");
    const auto held = [](double f) { return std::min(1.0, f); };
    const int n = static_cast<int>(chosen.size());
    // A longer time is a smaller fraction.
    constants[key] = {held(fraction), held(fraction / line.high), held(fraction / line.low), n};
    if (access == MemoryAccess::streaming && line.starts && line.start.value > 0)
      constants["memory.start_us"] = {line.start.value * 1e6, line.start.value * 1e6 * line.low,
                                      line.start.value * 1e6 * line.high, n};
  }
  return constants;
}

}  // namespace shardwise
