// Where a command's answer goes and in which form.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>

#include "catalog/result.hpp"

namespace shardwise {

inline constexpr int schema_version = 1;
inline constexpr int does_not_fit_code = 3;  // of a command that was asked to require a fit

struct Output {
  std::ostream& out;  // the answer and nothing else
  std::ostream& err;  // problems and progress
  bool json = false;
  bool colour = false;               // a terminal that wants it
  int width = 100;                   // columns of that terminal
  std::optional<int> columns = {};   // the same; absent: a file or a pipe, where lines may be long
  std::ostream* document = nullptr;  // gets what an HTML page would draw from; nullptr: nobody
  std::ostream* progress = nullptr;  // a terminal that is told how far it is; nullptr: none
  std::map<std::string, std::string, std::less<>> places = {};  // Request::places, of problems
  std::string report = {};  // where the answer goes as an HTML page too; empty: nowhere
  // Ends the program with this exit code once the answer is written, so that nobody takes down page
  // by page what it was made of; nullptr: others go on.
  void (*leave)(int code) = nullptr;
};

// YYYY-MM-DD, for files that are written: no answer depends on the day.
std::string today();

// One line per problem on `err`; returns the exit code of the gravest.
int report_problems(const Problems& problems, const Output& output);

}  // namespace shardwise
