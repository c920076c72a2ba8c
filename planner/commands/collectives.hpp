// `shardwise collectives --gpus ...`: how long would nccl-tests say that a collective takes there?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct CollectivesOptions {
  CLI::App* app = nullptr;
  Request request;  // of it the GPUs, how they stand and the profile
  std::vector<std::string>
      kinds;  // names of collectives; none: all that a step issues of all ranks
  bool json = false;
};

void add_collectives_flags(CLI::App& command, CollectivesOptions& options);

// All ranks in one group, by the model that every forecast asks, with nothing else on the links.
int collectives(const CollectivesOptions& options, const Facts& facts, const Output& output);

}  // namespace shardwise
