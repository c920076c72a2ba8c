// Attention whose kernel reads operands of 8 bits (MXFP8).
//
// Transformer Engine casts queries, keys and values by rows and by columns, each in a kernel of its
// own; their scales, one of a byte for 32 elements each way, are laid out by heads and then as the
// tensor cores want them, rows and columns apart. Backward it does the same with the gradient of
// the result. What it keeps are the 8-bit tensors, both ways, and the result in 16 bits
// (NVIDIA/TransformerEngine v2.16 transformer_engine/pytorch/attention/dot_product_attention/
// backends.py, FusedAttnFunc; utils.py, combine_and_quantize and mxfp8_quantize_fast_path).
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Where the kernel is cuDNN's on 16-bit activations; `work` has all but that.
bool attends_narrow(const GraphBuilder& b, const AttentionWork& work);

// Of one call, over all of a rank's tokens and heads.
struct AttentionElements {
  std::int64_t query = 0, key = 0, value = 0, result = 0;
};

// Adds the casts to `op`, which is to read and save queries, keys and values, and saves what they
// wrote in place of those. REQUIRES that the kernels that read them are yet to be added.
void cast_attention(GraphBuilder& b, Operator& op, const AttentionElements& elements);

}  // namespace shardwise
