// Memory by category: where the bytes of a forecast differ from bytes that somebody counted.
//
// Records of the oracle (tests/oracle) tell what tensors held by category at two moments: at the
// peak, and when the last forward pass of a step has ended, where all that is not a state is saved
// for backward. A category counts where the measured bytes are at least 1 % of the measured peak.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/validation/score.hpp"
#include "planner/validation/validation.hpp"

namespace shardwise {

struct CategoryScore {
  std::string_view moment;    // "after forward" | "at the peak"
  std::string_view category;  // as in memory_category.hpp
  ErrorStatistics error;
};

// One row per moment and category that any run tells; empty where none does.
std::vector<CategoryScore> compare_categories(const std::vector<ReplayedRun>& runs);

// A table, or nothing.
std::string category_report(const std::vector<CategoryScore>& rows);

}  // namespace shardwise
