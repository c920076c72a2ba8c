// What `launch` answers: the plan (asked for, read from files, or chosen), its forecast in the
// framework that will run it, and the files that make it run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/forecast/judgement.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

struct LaunchWish {
  std::string target;                      // name of a row of launch_targets()
  std::optional<double> learning_rate;     // with ...
  std::optional<int> learning_rate_batch;  // ... this many sequences per step
};

struct LaunchAnswer {
  const LaunchTarget* target = nullptr;
  LaunchJob job;
  Forecast forecast;
  Verdict verdict = Verdict::fits;
  LaunchFiles files;
  std::vector<std::string> notes;
};

// Problems: an unknown target, a plan that the framework cannot run or that the target cannot say,
// each with its reason.
Result<LaunchAnswer> launch_answer(const Request& request, const LaunchWish& wish,
                                   const Facts& facts);

}  // namespace shardwise
