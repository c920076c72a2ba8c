// Sweep: measurements of one thing that differ in their size only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calibrate/measurement.hpp"
#include "catalog/units.hpp"

namespace shardwise {

struct SweepPoint {
  Bytes bytes;
  Seconds time;
  int samples = 1;
};

struct Sweep {
  std::string bench;
  std::map<std::string, std::int64_t> sizes;  // without "bytes"
  std::map<std::string, std::string> labels;  // without "placement" and "dtype"
  std::vector<SweepPoint> points;             // ascending bytes; a size may stand more than once
  int discarded = 0;

  std::vector<Bytes> distinct_sizes() const;
  std::string subject() const;  // "all_reduce, 8 GPUs on 2 nodes"
  std::string name() const;     // as published, else the subject and the device
};

// Groups what has a size in bytes and a time or a rate. In-place and out-of-place points, and
// several runs of the same thing, are samples of one sweep. In order of first appearance.
std::vector<Sweep> sweeps_of(const std::vector<Measurement>& measurements);

}  // namespace shardwise
