// Plan rules: what makes a plan legal for a model, a cluster and a framework. Each broken rule is
// one sentence that says what was found and what would do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catalog/cluster.hpp"
#include "catalog/result.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// The most of any number in a plan, and of sequences in a step or tokens in a sequence.
inline constexpr int most_in_a_plan = 1'000'000;
inline constexpr int most_in_a_step = 100'000'000;

// Model chunks of all stages. A stage may hold nothing but the embedding, the head, or nothing at
// all; more than a handful of such stages is a mistake.
std::int64_t most_model_chunks(const Transformer& model);

// Why the model does not divide over so many tensor ranks; nothing where it does.
std::optional<std::string> tensor_refusal(const Transformer& model, int tensor);

// All broken rules; empty: legal.
Problems plan_problems(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster);

}  // namespace shardwise
