// RunOutlook: what a whole run comes to, from one forecast step: days without and with failures,
// how often to write a checkpoint, energy and dollars.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/operations.hpp"
#include "planner/answers/goodput.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/forecast/forecast.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

struct RunOutlook {
  std::int64_t steps = 0, tokens = 0;
  LongRun run;
  Bytes checkpoint;
  BytesPerSecond checkpoint_rate;  // of the whole job
  Seconds young, daly, best;       // intervals of useful work between checkpoints
  Seconds expected;                // wall time at Daly's interval, by his formula
  SimulatedWallTime simulated;     // at the best interval
  double goodput = 0;              // useful time / simulated mean
  KilowattHours energy;
  UsDollars electricity;
  std::optional<Rental> rental;
  UsDollars rent;  // of `rental`, for the simulated mean
  std::vector<std::string> notes;
};

// `useful` of steps on a cluster, with its failures and checkpoints; what was assumed is not told.
LongRun long_run(const Workload& workload, const Cluster& cluster, Seconds useful,
                 const Operations& operations);

// Nothing where the request states no amount of data.
std::optional<RunOutlook> run_outlook(const ResolvedRequest& request, const Question& question,
                                      const Forecast& forecast, const Operations& operations);

}  // namespace shardwise
