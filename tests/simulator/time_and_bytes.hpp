// A choice of recomputation by what it costs, and which of many no other beats in both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardwise {

struct TimeAndBytes {
  std::int64_t time, bytes;
  friend bool operator==(const TimeAndBytes&, const TimeAndBytes&) = default;
};

inline std::vector<TimeAndBytes> unbeaten_of(std::vector<TimeAndBytes> points) {
  std::sort(points.begin(), points.end(), [](TimeAndBytes a, TimeAndBytes b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  std::vector<TimeAndBytes> left;
  for (const TimeAndBytes p : points)
    if (left.empty() || p.bytes < left.back().bytes) left.push_back(p);
  return left;
}

}  // namespace shardwise
