// `shardwise compare MODEL --gpus ... --plan A --plan B ...`: plans side by side.
#pragma once

#include <string>

#include "planner/commands/output.hpp"
#include "planner/facts.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct CompareOptions {
  bool schedules = false;  // the pipeline schedules of one plan in place of several plans
  std::string memory;      // with schedules: the budget per GPU; empty: what the plan needs
};

// Flags of this command beside those of every request.
void add_compare_flags(CLI::App& command, CompareOptions& options);

int compare(const Request& request, const Facts& facts, const CompareOptions& options,
            const Output& output);

}  // namespace shardwise
