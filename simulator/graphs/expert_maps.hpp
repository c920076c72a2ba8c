// The maps by which Transformer Engine finds where rows of tokens go, each made by a kernel that
// waits for lanes, not for memory: to the experts of a token before an all-to-all, and by expert
// behind it. Backward takes the maps that forward made.
#pragma once

#include "simulator/graphs/expert_rows.hpp"
#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Whether rows are moved so: experts of Megatron Core, tokens sent by an all-to-all.
bool makes_row_maps(const GraphBuilder& b);

// Of a rank's tokens, each of which sorts its experts. The CPU's share is counted with the copies.
MemoryWork map_of_tokens(const GraphBuilder& b);

// Of the rows that arrive, in chunks of every expert of every rank. Chunks of one capacity are
// transposed instead (Megatron-LM @00611e6ee moe_utils.py, permute: its fused branch comes before
// drop_and_pad; @0014f1371 token_dispatcher.py, dispatch_postprocess: view, transpose(0, 1)).
MemoryWork map_of_chunks(const GraphBuilder& b, const ExpertShape& s);

}  // namespace shardwise
