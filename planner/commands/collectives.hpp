// `shardwise collectives --gpus ...`: how long each collective takes on those GPUs, by
// size, in the columns of nccl-tests.
#pragma once

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
  std::vector<std::string>
      kinds;  // names of collectives; none: all that a step issues of all ranks
};

// The command's own flags; those of a request are the caller's.
void add_collectives_flags(CLI::App& command, CollectivesOptions& options);

// All ranks in one group, by the model that every forecast asks, with nothing else on the links.
int collectives(const Request& request, const CollectivesOptions& options, const Facts& facts,
                const Output& output);

}  // namespace shardwise
