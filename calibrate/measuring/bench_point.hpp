// BenchPoint: one thing to measure, before anyone measured it. It is a Measurement without its
// value: the same words (bench, sizes, labels, quantity), so that a point and its measurement are
// told to belong together by their text alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardwise {

struct BenchPoint {
  std::string bench;
  std::map<std::string, std::int64_t> sizes;
  std::map<std::string, std::string> labels;
  std::string quantity = "time_s";
  std::string shrinks;  // the size that is halved where memory does not suffice; empty: none
  int weight = 1;       // its share of the time budget
};

using BenchPlan = std::vector<BenchPoint>;  // in the order of measuring

// "gemm dtype=bf16 k=64 m=128 n=64 [time_s]": the same for equal points, different for others.
// `shrinks` and `weight` are no part of it.
std::string identity(const BenchPoint& point);

// The point with its `shrinks` size halved; nothing where there is none, or it is 1.
std::optional<BenchPoint> smaller(const BenchPoint& point);

// Same bench, labels and size names, and no size below that of `other`: it needs as much memory.
bool at_least_as_large(const BenchPoint& point, const BenchPoint& other);

}  // namespace shardwise
