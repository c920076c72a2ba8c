// `shardwise validate [FILE...]`: replays published runs and prints our own error.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwise {

struct ValidateOptions {
  std::vector<std::string> files;  // empty: every run of the catalog
  bool json = false;               // one line per record instead of the table
  bool notes = false;              // also what was assumed and why something was skipped
  bool ranking = false;            // groups of runs that differ in plan only, instead of the table
  bool left_out = false;           // fitted constants without each of their sources, instead
  std::string by = "source";       // what the rows of the table are
  std::string fit_spread;          // file that gets the intervals fitted on these runs
  std::string residuals;           // file that gets the error by every dimension, to draw
  std::string report;              // file that gets the answer as a page
  int threads = 0;                 // 0: as many as the machine has
};

// The command's own flags; the caller owns --help and the name.
void add_validate_flags(CLI::App& command, ValidateOptions& options);

// The exit code. Answers go to `out`, problems to `err`, how far it is to `progress` (a terminal;
// nullptr: nobody). `root` is the catalog's.
int validate(const ValidateOptions& options, const std::filesystem::path& root, std::ostream& out,
             std::ostream& err, std::ostream* progress = nullptr);

}  // namespace shardwise
