// Replayed runs made up for a test.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "planner/validation/validation.hpp"

namespace shardwise {

// `records` are what the answers point to.
struct MadeRuns {
  std::deque<RunRecord> records;
  std::vector<ReplayedRun> replayed;

  // A run that ran, and is forecast to, with a tenth of doubt either way. Measured 0: not at all.
  ReplayedRun& add(const std::string& source, double measured, double predicted) {
    RunRecord& r = records.emplace_back();
    r.id = source + std::to_string(records.size() - 1);
    r.source = source;
    if (measured > 0) r.measured.step_time = Seconds(measured);
    r.measured.outcome = "ran";
    ReplayedRun& out = replayed.emplace_back();
    out.run = &r;
    out.step_time = {Seconds(predicted * 0.9), Seconds(predicted), Seconds(predicted * 1.1)};
    out.outcome = Outcome::ran;
    return out;
  }
};

}  // namespace shardwise
