// Fits the 80 % intervals: quantiles of measured / forecast over replayed runs, kind by kind.
//
// A kind of question, of one family of frameworks, falls back to the same kind of any framework,
// and then to coarser kinds, where too few runs are of it. Step time: a row needs five runs, and
// the next coarser kind that holds other runs too has the weight of twenty more in it, as quantiles
// of few runs are those of the one or two that came out worst. Memory: 20 runs of two sources,
// which stand alone (what each rule does for runs whose source was left out is told in
// spread_fit.cpp). Within a family every source weighs as the square root of its runs, so that a
// large sweep does not speak for all. In a row for any framework every family with 20 runs weighs
// alike, and smaller ones by their runs: it is read for those that have no row of their own, which
// may be like any of the others.
#pragma once

#include <string>
#include <vector>

#include "catalog/spread.hpp"

namespace shardwise {

// One figure of one run.
struct SpreadSample {
  std::string source;
  SpreadKey key;
  double ratio = 1;  // measured / forecast
};

// Step time by extent, tensor parallelism, pipeline and framework; memory by method, extent and
// framework. Most specific first.
std::vector<SpreadRow> fit_step_spread(const std::vector<SpreadSample>& samples);
std::vector<SpreadRow> fit_memory_spread(const std::vector<SpreadSample>& samples);

using SpreadFit = std::vector<SpreadRow> (*)(const std::vector<SpreadSample>&);

// Share of the samples that lie within their interval when it is fitted on all, and when it is
// fitted on the other sources alone.
struct SpreadCoverage {
  double in_sample = 0, left_out = 0;
};
SpreadCoverage spread_coverage(const std::vector<SpreadSample>& samples, SpreadFit fit);

}  // namespace shardwise
