// `shardwise calibrate`: measures the GPUs of this machine, by running the program
// `shardwise-calibrate`; reads logs of other tools; compares profiles.
//
//   shardwise calibrate [ARGUMENTS of shardwise-calibrate]
//   shardwise calibrate import FILE... [--fits] [--check] [--json] [--report FILE]
//                       [--out PROFILE [--gpu NAME] [--only TEXT] [--peer-access yes|no]
//                        [--source TEXT --date YYYY-MM-DD]]
//   shardwise calibrate diff PROFILE PROFILE
#pragma once

#include <string>
#include <vector>

#include "planner/report/output.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct CalibrateOptions {
  CLI::App *app = nullptr, *import_app = nullptr, *diff_app = nullptr;
  std::vector<std::string> files;     // to import
  std::vector<std::string> profiles;  // to compare: two
  bool json = false, check = false, fits = false;
  std::string out, gpu, only, peer_access, source, date, report;
};

// The flags and the inner commands; the caller owns the name.
void add_calibrate_flags(CLI::App& command, CalibrateOptions& options);

// The exit code. Runs shardwise-calibrate in the place of this process where no inner command was
// given and the program is there; 4 with one line where it is not.
int calibrate(const CalibrateOptions& options, const Output& output);

}  // namespace shardwise
