// Head and loss in one kernel that never writes a logit and makes them all again for backward:
// Cut Cross-Entropy (arXiv 2411.09009; apple/ml-cross-entropy @d42911f9b1).
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// The loss of hidden states `x` of `width`. `vocab`: padded, of all tensor ranks; `tied_here`: the
// head is the embedding of this stage. REQUIRES a framework whose loss is cut.
TensorIndex cut_head(GraphBuilder& b, TensorIndex x, std::int64_t vocab, std::int64_t width,
                     bool tied_here);

}  // namespace shardwise
