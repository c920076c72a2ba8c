// Logits whose columns lie on the tensor ranks, put together on each of them.
#pragma once

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// `own`: this rank's columns. `elements` of all ranks, of which `graded` have a gradient.
TensorIndex gathered_logits(GraphBuilder& b, TensorIndex own, std::int64_t elements,
                            std::int64_t graded);

}  // namespace shardwise
