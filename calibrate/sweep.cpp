#include "calibrate/sweep.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace shardwise {
namespace {

std::optional<SweepPoint> sweep_point(const Measurement& m) {
  const auto bytes = m.sizes.find("bytes");
  if (bytes == m.sizes.end() || bytes->second < 1 || !(m.value > 0)) return std::nullopt;
  const Bytes size(bytes->second);
  if (m.quantity == "time_s") return SweepPoint{size, Seconds(m.value), m.samples};
  if (m.quantity == "bytes_per_s")
    return SweepPoint{size, size / BytesPerSecond(m.value), m.samples};
  return std::nullopt;
}

}  // namespace

std::vector<Bytes> Sweep::distinct_sizes() const {
  std::vector<Bytes> distinct;
  for (const SweepPoint& p : points)
    if (distinct.empty() || distinct.back() != p.bytes) distinct.push_back(p.bytes);
  return distinct;
}

std::string Sweep::subject() const {
  std::string text = bench == "collective" ? label(labels, "collective")
                                           : bench + " " + label(labels, "direction");
  if (sizes.count("ranks")) text += ", " + std::to_string(sizes.at("ranks")) + " GPUs";
  if (sizes.count("nodes") && sizes.at("nodes") > 1)
    text += " on " + std::to_string(sizes.at("nodes")) + " nodes";
  if (const std::string protocol = label(labels, "protocol"); !protocol.empty())
    text += ", " + protocol;
  return text;
}

std::string Sweep::name() const {
  const std::string published = label(labels, "sweep"), device = label(labels, "device");
  if (!published.empty()) return published;
  return device.empty() ? subject() : subject() + ", " + device;
}

std::vector<Sweep> sweeps_of(const std::vector<Measurement>& measurements) {
  std::vector<Sweep> sweeps;
  for (const Measurement& m : measurements) {
    const auto point = sweep_point(m);
    if (!point) continue;
    Sweep key{m.bench, m.sizes, m.labels, {}, 0};
    key.sizes.erase("bytes");
    key.labels.erase("placement");
    key.labels.erase("dtype");
    auto at = std::find_if(sweeps.begin(), sweeps.end(), [&](const Sweep& s) {
      return std::tie(s.bench, s.sizes, s.labels) == std::tie(key.bench, key.sizes, key.labels);
    });
    if (at == sweeps.end()) at = sweeps.insert(at, std::move(key));
    at->points.push_back(*point);
    at->discarded += m.discarded;
  }
  for (Sweep& s : sweeps)
    std::stable_sort(s.points.begin(), s.points.end(),
                     [](const SweepPoint& a, const SweepPoint& b) { return a.bytes < b.bytes; });
  return sweeps;
}

}  // namespace shardwise
