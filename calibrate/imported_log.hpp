// ImportedLog: what was read in a file that another tool wrote, and what was not.
//
// An importer never guesses: a line that looks like a result and cannot be read is listed with its
// number and the reason; what a log does not tell is absent from the measurement.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measurement.hpp"

namespace shardwise {

struct UnreadLine {
  int line = 0;      // from 1; 0: the file as a whole
  std::string text;  // as it stands, shortened
  std::string why;
};

struct ImportedLog {
  std::string file;
  std::string format;  // "nccl-tests"; empty: no format that we know
  std::vector<Measurement> measurements;
  std::vector<UnreadLine> unread;
  std::map<std::string, std::string> facts;  // "driver", "cuda", "nccl", "tool", "device"
  int lines = 0;                             // of the file
};

// Adds an unread line, its text made printable and short.
void leave_unread(ImportedLog& log, int line, std::string_view text, std::string why);

// "run.log:17": the source of a measurement.
std::string at_line(const ImportedLog& log, int line);

}  // namespace shardwise
