// Measurement: one measured point of one bench, whoever measured it: our own kernels, or a log of
// another tool.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardwise {

// `sizes` are counts and bytes ("m", "n", "k", "batch", "bytes", "ranks", "nodes", "sequence",
// "heads", "head_dim"); `labels` the rest ("dtype", "device", "collective", "direction", "pass").
struct Measurement {
  std::string bench;  // "gemm", "attention", "copy", "collective", "launch", ...
  std::map<std::string, std::int64_t> sizes;
  std::map<std::string, std::string> labels;
  std::string quantity;  // "time_s", "bytes", "bytes_per_s", "flops_per_s"
  double value = 0;      // median over the samples that were kept
  double spread = 0;     // interquartile range over median
  int samples = 0;       // kept
  int discarded = 0;     // throttled or disturbed, not in the median
  std::string source;    // "shardwise-calibrate 0.1", or the log's file and line
};

// The label of this name; empty where there is none.
inline std::string label(const std::map<std::string, std::string>& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}
inline std::string label(const Measurement& m, const std::string& key) {
  return label(m.labels, key);
}

}  // namespace shardwise
