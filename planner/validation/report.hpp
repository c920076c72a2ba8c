// The validation as a table that people read.
#pragma once

#include <string>
#include <vector>

#include "planner/validation/score.hpp"

namespace shardwise {

// One row per source (or whatever `by` says), then the summary, the skips and the confusion about
// running out of memory.
std::string validation_report(const ValidationScore& score, std::string_view by);

// Every group of runs that differ in their plan only: how much slower the plan that is forecast
// fastest was than the fastest, and how well the order agrees; then the line over all groups.
std::string ranking_report(const ValidationScore& score);

// What was skipped and what was assumed, one line per record that has something to say.
std::string validation_notes(const std::vector<ReplayedRun>& runs);

}  // namespace shardwise
