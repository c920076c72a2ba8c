// ScoreBy: what replayed runs are told apart by, where errors are looked at dimension by dimension.
//
// A record's own words (source, GPU, method) are taken as they were written; numbers are those of
// the plan that was forecast, so that they stand for runs that leave some out as well. Sizes come
// in classes, rows of numbers in order of size. The bound is what most of the forecast step waits
// for (planner/forecast/step_bound.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/validation/validation.hpp"

namespace shardwise {

enum class ScoreBy {
  source,
  framework,
  gpu,
  method,
  recompute,
  precision,
  sequence,
  microbatch,
  tensor,
  pipeline,
  data,
  expert,
  nodes,
  size,
  bound
};
std::optional<ScoreBy> score_by_named(std::string_view name);
std::vector<std::string_view> score_by_names();

// The row that a run falls into. Words have rank 0 and come in order of name.
struct RowKey {
  double rank = 0;
  std::string name;
};
inline bool operator<(const RowKey& a, const RowKey& b) {
  return a.rank != b.rank ? a.rank < b.rank : a.name < b.name;
}

// REQUIRES: the run was answered.
RowKey row_key(ScoreBy by, const ReplayedRun& run);

}  // namespace shardwise
