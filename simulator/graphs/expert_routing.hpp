// The router of a mixture: which experts a token goes to.
#pragma once

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Each expert's logit of each token. A scaled router norms what the block began with, times
// weights, and scales the probability of every expert (transformers models/gemma4/
// modeling_gemma4.py, Gemma4TextRouter).
TensorIndex route_tokens(GraphBuilder& b, TensorIndex residual, TensorIndex normed);

// What decides which tokens go where, around the operator that was added last, which sends them.
void add_routing(GraphBuilder& b);

}  // namespace shardwise
