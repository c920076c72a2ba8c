// calibration: the whole of a run of `shardwise-calibrate`: every campaign of a machine, one after
// the other, the file saved after each point, progress told on the way.
//
//   shardwise-calibrate [--quick|--full] [--output FILE] [--resume] [--gpus 0,2] [--only BENCH]
//                       [--budget SECONDS] [--list] [--simulated-device] [--check-libraries]
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measuring/bench_plan.hpp"
#include "calibrate/measuring/campaign.hpp"

namespace shardwise {

struct CalibrationOptions {
  CalibrationMode mode = CalibrationMode::quick;
  std::filesystem::path output = "measurements.jsonl";
  bool resume = false;
  std::vector<int> gpus;          // empty: all
  std::string only;               // benches of this name alone; empty: all
  std::optional<Seconds> budget;  // of each GPU, in place of the mode's
  bool list = false;              // what is here, and nothing measured
  bool simulated = false;
  bool check_libraries = false;
  bool help = false;
};

// All problems at once; they are of the request (exit code 2).
Result<CalibrationOptions> read_calibration_options(const std::vector<std::string>& arguments);
std::string_view calibration_usage();

struct CalibrationMachine {
  MachineFacts facts;
  std::vector<Subject> subjects;  // in the order of measuring
};

// Leaves out what `only` and `gpus` do not ask for, and sets `budget`. A GPU that is not here is a
// problem of the request.
Problems restrict_subjects(const CalibrationOptions& options, CalibrationMachine& machine);

// Measures and saves; tells on `messages`. The exit code: 0 when all that could be measured was
// (also where a budget ran out), 130 when interrupted, 2 or 4 as in catalog/result.hpp, and 4 where
// not one point could be measured.
int run_calibration(const CalibrationOptions& options, const CalibrationMachine& machine,
                    const std::function<bool()>& interrupted, std::ostream& messages);

// Two simulated GPUs, for `--simulated-device`.
CalibrationMachine simulated_machine(CalibrationMode mode);

}  // namespace shardwise
