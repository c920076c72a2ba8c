// A softmax that a model's own code writes as maximum, difference, exponential, sum and quotient.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Adds its kernels, forward and backward, and what it keeps to an attention of so many scores.
void run_plain_softmax(GraphBuilder& b, Operator& op, std::int64_t scores);

// The kernels of a log-softmax written in the same way, over logits of `value` bytes each, in place
// of PyTorch's own (stanford-cs336/assignment2-systems @9d95f3b cs336_basics/nn_utils.py,
// log_softmax and cross_entropy).
void run_plain_log_softmax(Operator& op, double logits, double value);

}  // namespace shardwise
