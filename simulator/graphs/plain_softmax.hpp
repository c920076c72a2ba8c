// A softmax that a model's own code writes as maximum, difference, exponential, sum and quotient.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Adds its kernels, forward and backward, and what it keeps to an attention of so many scores.
void run_plain_softmax(GraphBuilder& b, Operator& op, std::int64_t scores);

}  // namespace shardwise
