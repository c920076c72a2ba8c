// What experts made of their tokens, weighed by the router's scores before it goes back: each
// framework has its own operators for it. `elements` are all rows that a rank's experts process
// times their width; what is returned are the weighed rows, of as many elements.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// The rows `x` with the bias of each of the rank's `experts` second linears, times the scores; `x`
// itself where the model has no such bias or its products add it (Megatron Core).
TensorIndex add_weighted_bias(GraphBuilder& b, TensorIndex x, std::int64_t elements, int experts);

// Megatron Core's bounds on gate and up, of `elements` values each; `up` itself as above.
TensorIndex clamp_activation(GraphBuilder& b, TensorIndex up, std::int64_t elements);

// Whether operators of PyTorch's own add the biases of experts (gpt-oss), one at a time.
bool adds_bias_alone(const GraphBuilder& b);

// The rows `x` with the bias of each one's expert; experts in turn make `calls` of it.
TensorIndex add_bias_alone(GraphBuilder& b, TensorIndex x, std::int64_t elements, int calls);

// gpt-oss's activation by such operators, of `elements` values from gate and up.
TensorIndex clamped_swish(GraphBuilder& b, TensorIndex up, std::int64_t elements, int calls);

// In fp32, before or after the rows are sent back (torchtitan).
TensorIndex weigh_rows(GraphBuilder& b, TensorIndex rows, TensorIndex scores,
                       std::int64_t elements);

// In their own format, in the order of experts (transformers 5).
TensorIndex weigh_in_order_of_experts(GraphBuilder& b, TensorIndex rows, TensorIndex scores,
                                      std::int64_t elements);

}  // namespace shardwise
