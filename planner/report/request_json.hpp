// The request as an answer echoes it: what was asked, and what was filled in.
//
//   {"model": "8b", "gpus": "2x24GB", "sequence": 2048, "assumed": {"sequence": 2048}}
//
// Every key holds its value as a request file would, and "assumed" repeats those that nobody asked
// for. Whoever reads the echo again (request_file.cpp) leaves such a key open as long as its value
// is still the assumed one: a default that is stated is not the same question as one left open
// (`plan` keeps to what a framework that was named can be told), and it may suit other GPUs less.
#pragma once

#include <vector>

#include "planner/report/json_parts.hpp"

namespace shardwise {

inline constexpr const char* assumed_key = "assumed";

// What was asked, key by key as a request file holds it.
Json asked_json(const Request& asked);

// The same with what a resolved request and one workload of its answer fill in. With a plan: its
// batch, and where the plan was asked for, so nothing of it searched, its microbatch, recompute and
// offload as well.
Json filled_json(const ResolvedRequest& request, const Workload& workload,
                 const ParallelPlan* plan = nullptr);

// The echo: `stated`, and beside it what all of `filled` have alike.
Json echo_json(const Request& stated, const std::vector<Json>& filled);

// The echo of an answer that rests on these questions.
Json request_json(const ResolvedRequest& request,
                  const std::vector<const Question*>& answered = {});

}  // namespace shardwise
