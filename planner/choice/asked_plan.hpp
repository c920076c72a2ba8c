// The plan that a request states, completed: what its text leaves out comes from the other flags,
// then from the framework's row. A flag that contradicts the text is a problem, never overruled.
//
//   dp   GPUs / (tp x cp x pp)          zero  the framework's default where dp > 1
//   mbs  --microbatch, else 1           ga    batch / (dp x mbs)
//   sp, cp-kind  the framework's default   recompute, offload  their flags, else the framework's
#pragma once

#include <string>

#include "planner/request/resolved_request.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// `text` as --plan takes it; "" stands for the framework's default: data parallel over all GPUs.
Result<ParallelPlan> complete_plan(const ResolvedRequest& request, const Workload& workload,
                                   const Cluster& cluster, const std::string& text);

// The name of the recompute row that the framework uses for this method.
const std::string& usual_recompute(const Workload& workload);

// Sends checkpoints to the host where the framework does so by itself (offloads_checkpoints_from).
void offload_as_usual(const Workload& workload, ParallelPlan& plan);

}  // namespace shardwise
