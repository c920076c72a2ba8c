// `shardwise launch MODEL --gpus ... --target T [--out DIR [--force]]`: the files that run a plan.
#pragma once

#include <string>

#include "planner/answers/launch_answer.hpp"
#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct LaunchOptions {
  std::string folder;  // empty: the files are printed
  bool force = false;  // replaces files of the folder that say something else
};

void add_launch_flags(CLI::App& command, LaunchOptions& options);

int launch(const Request& request, const LaunchOptions& options, const Facts& facts,
           const Output& output);

}  // namespace shardwise
