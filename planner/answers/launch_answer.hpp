// What `launch` answers: the plan (asked for, read from files, or the best that the target can be
// told, of what `fit` and `plan` look at), its forecast in the framework that will run it, and the
// files that make it run.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/forecast/judgement.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

struct LaunchAnswer {
  ResolvedRequest request;
  const LaunchTarget* target = nullptr;
  LaunchJob job;
  Forecast forecast;
  Verdict verdict = Verdict::fits;
  LaunchFiles files;
  std::vector<std::string> notes;
  // Nobody asked for the plan, and none that the target can be told fits: what is missing, in one
  // sentence. No files are written then.
  std::optional<std::string> nothing_fits{};
};

// `request.target`: the name of a row of launch_targets(). Problems: one missing or unknown, a plan
// that the framework cannot run or that the target cannot say, each with its reason.
Result<LaunchAnswer> launch_answer(const Request& request, const Facts& facts);

}  // namespace shardwise
