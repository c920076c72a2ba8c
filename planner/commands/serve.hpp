// `shardwise serve`: the local page and the JSON API, run as the program shardwise-serve beside
// this one (planner/serve).
#pragma once

#include <string>

#include "planner/report/output.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8700;   // 0: any that is free
  int seconds = 10;  // that an answer may take
};

void add_serve_flags(CLI::App& command, ServeOptions& options);

// Becomes shardwise-serve, and so returns only where that cannot be run: the exit code.
int serve(const ServeOptions& options, const Output& output);

}  // namespace shardwise
