// A request with what plan files say (--plan-from, planner/launch/plan_file.hpp).
//
// It becomes the plan's text and the fields that were left open; a field that was asked for and
// contradicts a file is a problem.
#pragma once

#include <optional>
#include <vector>

#include "planner/launch/plan_file.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

struct PlanFiles {
  Request request;                      // the one given, with what the files say
  std::vector<PlanFileReport> reports;  // in the order read
  std::optional<double> learning_rate;  // of the files, as it is
  std::optional<int> batch;             // sequences per step of the files
};

// `request.plan_from`. Problems name file, key, the value found and what was expected.
Result<PlanFiles> with_plan_files(const Request& request, const PlanFileContext& context);

// The same from texts.
Result<PlanFiles> with_plan_texts(const Request& request, const PlanFileContext& context,
                                  const std::vector<PlanText>& texts);

}  // namespace shardwise
