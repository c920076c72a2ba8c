// SweepRanking: the rows of a sweep in order of merit, group by group. Rows are compared with one
// another only where they do the same work: the same model, method and sequence.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/sweep/sweep_row.hpp"

namespace shardwise {

// What makes one row better than another: a row of this list.
struct SweepMeasure {
  std::string_view name;     // as --by takes it
  std::string_view column;   // of the row
  std::string_view heading;  // of a table
  bool more_is_better;
};

std::span<const SweepMeasure> sweep_measures();
const SweepMeasure* sweep_measure(std::string_view name);  // nullptr: no such measure

// Indices into the rows ranked.
struct SweepGroup {
  std::string model, method;
  std::int64_t sequence = 0;
  std::vector<std::size_t> ranked;      // runs and has the figure: best first
  std::vector<std::size_t> unmeasured;  // runs; nobody knows the figure, such as a price
  std::vector<std::size_t> do_not_fit;  // least short first
};

struct SweepRanking {
  std::vector<SweepGroup> groups;                           // by their first point
  std::map<std::string, std::vector<std::size_t>> refused;  // by reason
  std::map<std::string, int> counts;                        // rows by verdict
};

// Of rows in the order of their points; ties keep it.
SweepRanking rank_sweep(const std::vector<SweepRow>& rows, const SweepMeasure& by);

}  // namespace shardwise
