// Queries, keys and values of an attention layer, up to what its kernel reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {

struct AttentionProjections {
  TensorIndex q = 0, k = 0, v = 0;
  std::optional<TensorIndex> gate;       // of attention's output, where the model has one
  std::int64_t heads = 0, kv_heads = 0;  // on this rank
  std::int64_t qk_dim = 0, v_dim = 0;
  std::optional<TensorIndex> chosen;  // a mask of what an indexer lets queries see
};

// Of `x`, which was gathered from `normed`: projected, normed by head, rotated.
AttentionProjections project_attention(GraphBuilder& b, TensorIndex x, TensorIndex normed,
                                       BlockKind kind);

// Keys or values copied out for every query head that reads them.
TensorIndex repeated_heads(GraphBuilder& b, std::string_view name, TensorIndex t,
                           std::int64_t elements);

}  // namespace shardwise
