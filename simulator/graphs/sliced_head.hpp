// Head and loss in slices of the tokens, so that the logits are never there as a whole: chunked
// losses and kernels that fuse the two (Liger's fused linear cross-entropy).
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// The loss of hidden states `x` of `width`. `vocab`: padded, of all tensor ranks; `tied_here`: the
// head is the embedding of this stage. REQUIRES a framework whose loss is chunked or fused_linear.
TensorIndex sliced_head(GraphBuilder& b, TensorIndex x, std::int64_t vocab, std::int64_t width,
                        bool tied_here);

}  // namespace shardwise
