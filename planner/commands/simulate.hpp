// `shardwise simulate MODEL --gpus ... --plan ...`: one plan, step time and memory in detail.
#pragma once

#include <string>

#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct SimulateOptions {
  bool require_fit = false;
  bool draw = false;  // the pipeline, below the answer
  std::string trace;  // a file to write the step to; empty: none
};

// Flags of this command beside those of every request.
void add_simulate_flags(CLI::App& command, SimulateOptions& options);

// The exit code: 0 answered, 3 with `require_fit` where it does not fit, 2 and 4 for problems.
int simulate(const Request& request, const Facts& facts, const SimulateOptions& options,
             const Output& output);

}  // namespace shardwise
