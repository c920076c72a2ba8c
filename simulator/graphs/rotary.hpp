// Rotary position embeddings of queries and keys.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

enum class Rotated { query, key };

// `t` of `elements`, rotated; itself where the model has other positions.
TensorIndex rotate(GraphBuilder& builder, TensorIndex t, std::int64_t elements, Rotated what);

}  // namespace shardwise
