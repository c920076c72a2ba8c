// Residuals: the errors of a validation dimension by dimension, to draw.
//
// One entry per dimension, row of it and source: sources stay apart, so that a sweep of a thousand
// runs does not hide what ten others say of the same sequence length. As text: one line each,
// separated by tabs, which gnuplot and the like read (docs/residuals.gp).
#pragma once

#include <string>
#include <vector>

#include "planner/validation/score.hpp"

namespace shardwise {

struct Residual {
  std::string dimension;  // a name of ScoreBy
  RowKey row;
  std::string source;
  ErrorStatistics time, memory;
};

// Of every dimension but the source itself; rows in order within each. Only what was measured.
std::vector<Residual> residuals(const std::vector<ReplayedRun>& runs);

// dimension, place of the row (from 1), row, source, figure ("time" or "memory"), runs, bias and
// median size of the error in per cent; the first line names them.
std::string residual_lines(const std::vector<Residual>& residuals);

}  // namespace shardwise
