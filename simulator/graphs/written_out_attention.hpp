// scaled_dot_product_attention by PyTorch's own operators: no fused kernel takes its operands.
//
// transformers hands it K and V of the heads that there are where nothing masks (since 4.54,
// integrations/sdpa_attention.py, use_gqa_in_sdpa). The memory-efficient kernel wants as many as
// of Q (PyTorch aten/src/ATen/native/transformers/cuda/sdp_utils.cpp,
// check_batch_size_and_num_heads_dense<false>), and the flash kernel begins with compute
// capability 8.0. What is left widens Q, K and V to fp32, expands K and V to all heads, and keeps
// these three and one matrix of probabilities (transformers/attention.cpp,
// _scaled_dot_product_attention_math, whose result goes back to 16 bits). Of h heads of d:
//
//   kept      4 B of t h d three times, 4 B of every score
//   forward   scores, softmax, and what _safe_softmax makes of both with a byte of mask: 13 B of a
//             score, 4 of which are kept (SoftMax.cpp)
//   backward  the gradient, that times the softmax, and the difference: 12 B of a score more
#pragma once

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Whether an attention of so many heads and, of keys, so many goes that way.
bool writes_attention_out(const GraphBuilder& b, std::int64_t heads, std::int64_t kv_heads);

// An operand of so many elements in fp32, of all heads.
TensorIndex widened(GraphBuilder& b, std::string_view name, TensorIndex t, std::int64_t elements);

// What the operator keeps beside its operands, and takes while it runs.
void keep_wide_scores(GraphBuilder& b, Operator& op, const AttentionWork& work);

}  // namespace shardwise
