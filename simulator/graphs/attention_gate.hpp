// Attention's output times a gate that the block's input makes.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// out * sigmoid(gate) of `elements` values each; returns the product.
TensorIndex gated_output(GraphBuilder& b, TensorIndex out, TensorIndex gate, std::int64_t elements);

// The same with one value for each head, which a linear makes of `x` [tokens, hidden].
TensorIndex head_gated_output(GraphBuilder& b, TensorIndex out, TensorIndex x,
                              std::int64_t elements);

}  // namespace shardwise
