// The request that asks for what an advice forecast, so that whoever takes it has no need to
// translate: as JSON for --request, or as a command line.
#pragma once

#include <optional>

#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

// `request` with what tells `changed` from `missed`, and its whole plan. Nothing where no flag says
// the change (weights that are read once), or the model came without a name.
std::optional<Request> advised_request(const ResolvedRequest& request, const Question& missed,
                                       const Question& changed);

}  // namespace shardwise
