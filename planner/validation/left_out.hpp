// Constants that were fitted to training runs, and the step time of runs they were not fitted on.
//
// For each such constant and each source that it rests on, the constant is fitted again without
// that source and every source's median error is taken anew. A source's own best value is the one
// at which the median over its runs of measured / forecast is 1, over those runs whose step time
// follows the constant by half at least: its runs within one node where it has three, for every
// such constant is a property of a GPU or of its host and no network should speak for it; a source
// with fewer than three runs in all has no say. The constant is Tukey's biweight location of its
// sources' best values, in logarithms: sources that are far off for a reason of their own do not
// move it. Where one source was all there was, what the row says stands without it
// (FittedField::without).
//
// Step times between the constant's value and a tenth above or below are interpolated in
// logarithms, so that a constant costs two replays of all runs, not one per source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/validation/validation.hpp"

namespace shardwise {

struct FittedConstant {
  std::string name;  // "training_load of hopper"
  double value = 0;
  std::vector<std::string> on;  // sources
  double without = 0;           // its value where none of them is known
  std::function<void(Catalog&, Profile&, double)> set;
};

// Every constant of this catalog and profile that rests on training runs.
std::vector<FittedConstant> fitted_constants(const Catalog& catalog, const Profile& profile);

// A constant fitted without one source.
struct LeftOutFit {
  std::string constant, source;  // the one left out
  double value = 0, refitted = 0;
  double on_all = 0;                   // what all its sources give today
  double in_sample = 0, left_out = 0;  // median |error| of that source's step times
  std::string most_moved;              // the other source whose median moves most ...
  double moved = 0;                    // ... and by how much, as a fraction (0.02 is two points)
};

// One step time under three values of a constant, and what was measured.
struct SteppedRun {
  std::string source;
  double measured = 0, low = 0, here = 0, high = 0;  // [s]; low and high: a tenth off the constant
  bool in_one_node = true;
};

// By how much ln(step time) follows ln(constant), downwards and upwards of here.
struct Follows {
  double down = 0, up = 0;
};
Follows follows(const SteppedRun& run);

// The step time with the constant at `factor` times its value.
double step_at(const SteppedRun& run, double factor);

// The robust mean over these sources of the factors that are best for each; 1 where too few follow.
double best_factor(const std::vector<SteppedRun>& runs, const std::vector<std::string>& on);

// Every constant without every one of its sources, in the order of fitted_constants.
std::vector<LeftOutFit> left_out_fits(const std::vector<RunRecord>& runs,
                                      const ValidationInputs& inputs, int threads);

// As a table, the two bars at its end.
std::string left_out_report(const std::vector<LeftOutFit>& fits);

}  // namespace shardwise
