// Order statistics of a few samples.
#pragma once

#include <vector>

namespace shardwise {

// The value below which the fraction `q` lies, interpolated. REQUIRES samples, 0 <= q <= 1.
double quantile(std::vector<double> samples, double q);
double median(std::vector<double> samples);
// Interquartile range over the median; 0 for one sample.
double relative_spread(const std::vector<double>& samples);

}  // namespace shardwise
