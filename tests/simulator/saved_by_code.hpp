// What one layer of a model's own code keeps, of small eager models on 256 tokens.
#pragma once

#include <cstdint>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise::model_code {

inline constexpr std::int64_t code_tokens = 256, h = 512, f = 2048;

inline Workload eager_workload(Transformer model) {
  Workload w = pretraining(std::move(model), code_tokens);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.layers.runs_transformers = true;
  return w;
}

// Bytes per token of one layer from forward to backward.
inline std::int64_t saved_by_code(const Workload& w, BlockKind kind = {}) {
  return kept_bytes(block_graph(w, plan_of(1), kind)) / code_tokens;
}

inline std::int64_t saved_with(Workload w, const ModelCode& code) {
  w.model.code = code;
  return saved_by_code(w);
}

}  // namespace shardwise::model_code
