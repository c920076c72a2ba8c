#include "calibrate/measuring/bench_point.hpp"

#include <algorithm>

namespace shardwise {

std::string identity(const BenchPoint& point) {
  std::string text = point.bench;
  for (const auto& [key, value] : point.labels)
    text.append(" ").append(key).append("=").append(value);
  for (const auto& [key, value] : point.sizes)
    text.append(" ").append(key).append("=").append(std::to_string(value));
  return text.append(" [").append(point.quantity).append("]");
}

std::optional<BenchPoint> smaller(const BenchPoint& point) {
  const auto size = point.sizes.find(point.shrinks);
  if (size == point.sizes.end() || size->second < 2) return std::nullopt;
  BenchPoint half = point;
  half.sizes[point.shrinks] = size->second / 2;
  return half;
}

bool at_least_as_large(const BenchPoint& point, const BenchPoint& other) {
  if (point.bench != other.bench || point.labels != other.labels) return false;
  return std::equal(point.sizes.begin(), point.sizes.end(), other.sizes.begin(), other.sizes.end(),
                    [](const auto& mine, const auto& its) {
                      return mine.first == its.first && mine.second >= its.second;
                    });
}

}  // namespace shardwise
