// Sparse attention by kernels of its own (FrameworkAttention::indexer_slice): queries take the up
// projection of keys over ("absorbed"), so that one latent key serves all heads and those that an
// indexer has chosen are read by their numbers; values are expanded behind the kernel.
#pragma once

#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {

// Whether the model's sparse attention runs so.
bool attends_sparsely(const GraphBuilder& b);

// What latent attention makes of its input before anything is expanded.
struct LatentInputs {
  TensorIndex query = 0;         // of all heads
  TensorIndex query_latent = 0;  // what it was expanded from
  TensorIndex compressed = 0;    // keys' and values' latent beside the rotary part of keys
  TensorIndex normed = 0;        // that latent
};
LatentInputs latent_inputs(GraphBuilder& b, TensorIndex x);

// From the input of a block's attention to what its output projection reads. REQUIRES
// attends_sparsely.
TensorIndex add_sparse_attention(GraphBuilder& b, TensorIndex x, BlockKind kind);

}  // namespace shardwise
