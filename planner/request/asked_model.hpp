// The model of a request: by its name in the catalog, by the path of its config.json, or, where the
// request names none, by what its plan files call it ("base_model: meta-llama/Llama-3.1-8B").
#pragma once

#include "catalog/result.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

// Fills `model`, and `asked.model` where a file named it; tells what a name was taken to mean.
void resolve_model(ResolvedRequest& r, Problems& problems);

}  // namespace shardwise
