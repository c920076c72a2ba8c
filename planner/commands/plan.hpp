// `shardwise plan MODEL --gpus 2048xH100-SXM`: the best plans of the whole plan space, ranked.
#pragma once

#include "planner/answers/plan_answer.hpp"
#include "planner/facts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct PlanOptions {
  bool require_fit = false;
  bool elapsed = false;  // time in the JSON, which is then not the same bytes each time
};

void add_plan_flags(CLI::App& command, PlanOptions& options);

// The exit code: 0 answered, 3 with `require_fit` where no plan fits, 2 and 4 for problems.
int plan(const Request& request, const PlanOptions& options, const Facts& facts,
         const Output& output);

}  // namespace shardwise
