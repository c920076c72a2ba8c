// Attention of a context group whose kernel runs on one rank's keys at a time (ring attention,
// arXiv 2310.01889): the parts, what joins them, and how keys and their gradients travel.
//
// s queries and as many keys on each of c ranks. Causal work is dealt evenly by giving each rank a
// chunk of both halves of a sequence: its own s x s pairs are a causal part, each other rank's keys
// leave s x s/2 of them, half of the keys or half of the queries.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Elements on this rank: of the queries, of its keys and values, of the attention's output.
struct RingOperands {
  std::int64_t queries = 0, keys_and_values = 0, output = 0;
};

// Whether the kernel of this framework and plan runs on parts of `whole`, the share of one rank.
bool attends_in_parts(const GraphBuilder& b, const AttentionWork& whole);

// The kernels that compute `whole`.
std::vector<AttentionWork> ring_parts(const GraphBuilder& b, const AttentionWork& whole);

// Appends to an attention operator what joins its parts in both directions, and what they hold
// meanwhile. REQUIRES attends_in_parts.
void join_ring(const GraphBuilder& b, const RingOperands& o, Operator& op);

// What the context group exchanges in one direction. Empty with one rank.
std::vector<Kernel> context_exchange(const GraphBuilder& b, const RingOperands& o, bool backward);

}  // namespace shardwise
