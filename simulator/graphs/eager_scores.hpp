// Scores that an eager attention stores: what it keeps of them for backward.
#pragma once

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Appends the tensors that the eager kernel materialises per head, [b, a, s, s], and what it needs
// for a while. Where a checkpoint keeps products (selective-op), the first of them is the scores:
// mask, softmax and dropout are made again of them in backward (PyTorch torch/utils/checkpoint.py,
// create_selective_checkpoint_contexts; aten.bmm is in the lists, aten._softmax is not).
void keep_scores(GraphBuilder& b, Operator& op, const AttentionWork& work);

}  // namespace shardwise
