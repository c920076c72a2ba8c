// Why a plan cannot be said: the checks that several targets share, each adding one sentence.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/cluster.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

using Refusals = std::vector<std::string>;

// Sizes that mean nothing in this plan.
Refusals meaningless_sizes(const ParallelPlan& plan, const Workload& workload);

// Keys of a plan that no target writes: what-ifs, and what its framework takes in code only.
void refuse_unwritten(Refusals& to, const ParallelPlan& plan);

// GPUs for which no target writes: all of them start PyTorch on CUDA or ROCm.
void refuse_machines(Refusals& to, const Cluster& cluster);

// Adds the reason where the condition holds.
inline void refuse_if(Refusals& to, bool refused, std::string_view reason) {
  if (refused) to.emplace_back(reason);
}

// The target knows data parallelism only: no tensor, pipeline, context or expert ranks, no split of
// layers over cards that take turns.
void refuse_model_parallel(Refusals& to, const ParallelPlan& plan, std::string_view target);
void refuse_recompute_except(Refusals& to, const ParallelPlan& plan, std::string_view target,
                             std::initializer_list<std::string_view> known);
// The methods and precisions that a target knows.
void refuse_adapters(Refusals& to, const Workload& workload, std::string_view target);
void refuse_precision_except(Refusals& to, const Workload& workload, std::string_view target,
                             std::initializer_list<DType> known);
// Weights that the target, which quantises with bitsandbytes only, would have to find quantised.
void refuse_unstored_formats(Refusals& to, const Workload& workload, std::string_view target);
// Trains on the next token only, with the loss that the framework has of its own.
void refuse_other_losses(Refusals& to, const Workload& workload, std::string_view target);

}  // namespace shardwise
