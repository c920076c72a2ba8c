// Goodput: how long a run takes when machines fail and checkpoints have to be written.
//
// Failures come at random with mean time M between them; a checkpoint takes d to write after every
// t of useful work; a failure costs the work since the last checkpoint and a restart R.
//
//   Young (1974)   t = sqrt(2 d M)
//   Daly (2006)    t = sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d   where d < 2M, else M
//   wall time      M e^(R / M) (e^((t + d) / M) - 1) W / t   for useful work W (Daly, equation 20)
//
// The same run is also simulated, failure by failure, from a seed; one that sees thousands of them
// is told by the mean and the variance of its segments instead (goodput.cpp).
#pragma once

#include <cstdint>

#include "catalog/units.hpp"

namespace shardwise {

struct LongRun {
  Seconds useful;                      // the steps alone
  Seconds mean_time_between_failures;  // of the whole job
  Seconds write;                       // of one checkpoint
  Seconds restart;
};

Seconds young_interval(const LongRun& run);
Seconds daly_interval(const LongRun& run);
Seconds expected_wall_time(const LongRun& run, Seconds interval);

struct SimulatedWallTime {
  Seconds low, mean, high;  // of many runs: the 10th and 90th of a hundred, and the mean
};

// `runs` runs; the same seed gives the same failures whatever the interval.
SimulatedWallTime simulated_wall_time(const LongRun& run, Seconds interval, int runs,
                                      std::uint64_t seed);

// Of intervals around Daly's, a quarter octave apart, the one whose simulated mean is least.
Seconds best_simulated_interval(const LongRun& run, int runs, std::uint64_t seed);

}  // namespace shardwise
