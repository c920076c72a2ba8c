// Stored scores that a framework's fused softmax does not take.
#pragma once

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Megatron's kernel takes scores of four sequences or heads at a time, and rows and columns in
// fours (megatron/core/fusions/fused_softmax.py, FusedScaleMaskSoftmax.is_kernel_available; the
// same in Transformer Engine's softmax.py). Other scores go by forward_torch_softmax.
bool leaves_fused_softmax(const GraphBuilder& b, const AttentionWork& work);

// Adds forward_torch_softmax and its backward to an attention of so many 16-bit scores; `half`:
// nothing is widened, as where the model was cast and its configuration says nothing of 16 bits.
void run_unfused_softmax(Operator& op, double scores, bool half);

}  // namespace shardwise
