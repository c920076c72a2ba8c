// Programs that lay their buffers out before they run (FrameworkLayers::lays_out_results): whatever
// an operator makes has memory of its own for the whole step, and so has a gradient of each.
#pragma once

#include "simulator/graphs/operators.hpp"

namespace shardwise {

// Keeps every result of every operator in `graph` but its own, which the layer behind keeps, what
// an operator makes on the way as well, at twice its size, and lets no gradient be made later on.
void lay_out_results(LayerGraph& graph);

}  // namespace shardwise
