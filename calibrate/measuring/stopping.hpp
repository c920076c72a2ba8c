// When a bench has been run often enough: when the median is known well enough, or its time is up.
//
//   error of the median = sqrt(pi / 2) * sigma / (sqrt(n) * median),  sigma = IQR / 1.349
//
// (the asymptotic deviation of a median of normal samples, with sigma from the interquartile range
// so that outliers do not count). NVBench stops where the deviation of the samples themselves is
// below 0.5 % (nvbench/detail/stdrel_criterion.cxx), which a noisy kernel never reaches; the error
// of the median shrinks with every sample.
#pragma once

#include <vector>

#include "catalog/units.hpp"

namespace shardwise {

struct StoppingRule {
  int min_samples = 5;
  int max_samples = 500;
  Seconds min_busy = Seconds(0.002);  // of the device, in samples that were kept
  double max_error = 0.005;           // of the median, relative
};

// Median and spread (IQR over median) of samples. REQUIRES: not empty.
// Quartiles are interpolated linearly between the samples next to them.
struct Centre {
  double median = 0;
  double spread = 0;
};
Centre centre(std::vector<double> samples);

// The relative error of the median, as above; 0 where all samples are equal.
double median_error(const std::vector<double>& samples);

bool known_well(const StoppingRule& rule, const std::vector<double>& samples, Seconds busy);

}  // namespace shardwise
