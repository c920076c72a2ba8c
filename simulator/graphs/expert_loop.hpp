// Experts that Python calls one after the other: each waits for the tokens that chose it, takes
// their rows, and adds what it made of them to the layer's output.
#pragma once

#include <cstdint>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Whether the layer's experts are called so.
bool in_turn(const GraphBuilder& b);

// The products of `op`, which is not added yet: `matrices` linears of each expert, a module each,
// of `elements` together.
void call_in_turn(GraphBuilder& b, Operator& op, int matrices, std::int64_t elements);

// What brings `rows` tokens to the experts as `routed` rows, the operator that was added last,
// opens the loop; what brings them back follows; what sums them ends it.
void dispatch_in_turn(GraphBuilder& b, std::int64_t rows, std::int64_t routed);
void combine_in_turn(GraphBuilder& b);
void end_turns(GraphBuilder& b);

}  // namespace shardwise
