#include "calibrate/memory_fit.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/median.hpp"
#include "calibrate/robust_regression.hpp"

namespace shardwise {
namespace {

// Bytes that a kernel of calibrate/device/row_kernels.cu moves per element of its shape.
struct MemoryKernel {
  std::string_view name;
  MemoryAccess access;
  double bytes_per_element;
};
constexpr std::array<MemoryKernel, 12> kernels{
    {{"rms_norm", MemoryAccess::reduction, 4},
     {"rms_norm_backward", MemoryAccess::reduction, 6},
     {"layer_norm", MemoryAccess::reduction, 4},
     {"softmax", MemoryAccess::reduction, 4},
     {"softmax_backward", MemoryAccess::reduction, 6},
     {"cross_entropy", MemoryAccess::reduction, 4},
     {"add", MemoryAccess::streaming, 6},
     {"gelu", MemoryAccess::streaming, 4},
     {"gelu_backward", MemoryAccess::streaming, 6},
     {"silu_multiply", MemoryAccess::streaming, 6},
     {"silu_multiply_backward", MemoryAccess::streaming, 10},
     {"cast_to_fp32", MemoryAccess::streaming, 6}}};
constexpr double adam_bytes_per_parameter = 28;  // fp32: four read, three written

std::string label(const Measurement& m, const char* key) {
  const auto found = m.labels.find(key);
  return found == m.labels.end() ? "" : found->second;
}
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
  const std::string name = label(m, "kernel");
  if (name == "adam" && label(m, "form") == "fused")
    return MovedBytes{ceil_bytes(adam_bytes_per_parameter * size(m, "parameters")),
                      Seconds(m.value)};
  for (const MemoryKernel& k : kernels)
    if (k.name == name)
      return MovedBytes{ceil_bytes(k.bytes_per_element * size(m, "rows") * size(m, "columns")),
                        Seconds(m.value), k.access};
  return std::nullopt;
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

std::map<std::string, MeasuredConstant> fit_memory(const std::vector<MovedBytes>& points,
                                                   BytesPerSecond bandwidth,
                                                   std::vector<std::string>& notes) {
  std::map<std::string, MeasuredConstant> constants;
  for (const auto& [access, key] :
       {std::pair{MemoryAccess::streaming, "memory.streaming_fraction"},
        std::pair{MemoryAccess::reduction, "memory.reduction_fraction"}}) {
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
