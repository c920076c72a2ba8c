// A campaign: all points of a plan on one GPU (or on the machine as a whole), one after the other,
// within a time budget.
//
// What it does next depends on the plan and on the entries so far alone, never on when it was
// started: going on after a crash is going through the entries of the file, and ends as if nothing
// had happened.
//
//   - Each point may take its share (by weight) of the time that is left.
//   - Where memory does not suffice, larger points of the bench are left out and the point itself
//     is tried at half its size, until it fits.
//   - Where the GPU is lost, the campaign ends and the next one begins.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "calibrate/measuring/measurement_file.hpp"

namespace shardwise {

// One GPU, or the machine as a whole, and what is to be measured on it.
struct Subject {
  std::optional<int> gpu;
  std::string name;
  BenchDevice device;
  BenchPlan plan;
  Seconds budget;
};

struct Progress {
  const Subject* subject = nullptr;
  const Entry* entry = nullptr;  // just finished
  int done = 0;
  int planned = 0;
  Seconds elapsed;    // of the subject
  Seconds remaining;  // of the subject: the points left as fast as those so far, within the budget
};

struct CampaignHands {
  std::function<void(const Progress&)> finished;  // after each new entry, to save and to tell
  std::function<bool()> interrupted;              // asked before each point
};

enum class CampaignEnd { complete, out_of_time, lost, interrupted };

// Measures what `entries`, those of this subject, does not have yet, and appends to it.
CampaignEnd run_campaign(const Subject& subject, const MeasuringRules& rules,
                         const CampaignHands& hands, std::vector<Entry>& entries);

}  // namespace shardwise
