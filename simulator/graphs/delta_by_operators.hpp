// The gated delta rule by PyTorch's own operators, as transformers' classes run it where
// flash-linear-attention is not installed (torch_chunk_gated_delta_rule of models/qwen3_5,
// qwen3_next and olmo_hybrid), behind an nn.Conv1d and a SiLU where causal_conv1d is not either.
//
// Queries, keys and values are widened to fp32, in chunks of C = 64 tokens, and each chunk's
// triangle is solved: row by row in a Python loop (5.10.4), or by two triangular solves (5.17.0 and
// later). A second loop goes from chunk to chunk. Of rows padded to whole chunks, value heads and
// head dims K and V, autograd keeps in fp32, counted in numbers of a row and head:
//
//   row by row  7 K + 3 V + 6 C + K V / C + (C^2 - 1) / 3, the last the triangle's parts that the
//               loop has cloned; and keys and queries of all value heads as they came, where those
//               are more than their own
//   solved      8 K + 3 V + 5 C + K V / C
//
// The chunk loop indexes tensors of all chunks. Its backward makes for each chunk one of zeros as
// large as all of them and adds it (12 K + 4 V + 4 C numbers), and copies the output's gradient
// (2 V): the work grows with the square of the sequence.
#pragma once

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Whether the rule of this model goes that way here.
bool runs_delta_by_operators(const GraphBuilder& b);

// `projected`: queries, keys and values before the convolution; `rates`: what decays and rates are
// made of. Returns the rule's result.
TensorIndex add_delta_by_operators(GraphBuilder& b, TensorIndex projected, TensorIndex rates);

}  // namespace shardwise
