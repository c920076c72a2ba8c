// What a graph keeps from its forward to its backward pass.
#pragma once

#include <cstdint>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/layer_script.hpp"

namespace shardwise {

// Bytes, where nothing runs again; statistics of softmax and norms aside.
inline std::int64_t kept_bytes(const LayerGraph& graph) {
  ScriptOptions options;
  options.runs_again.assign(graph.operators.size(), false);
  const LayerScript s = layer_script(graph, options);
  return s.saved_bytes - s.saved_statistics_bytes;
}

}  // namespace shardwise
