// The weights of a layer as tensors of their own, as Megatron Core has them: projections that read
// one input are one matrix (linear_qkv, linear_fc1: NVIDIA/Megatron-LM @d98e8a64dd megatron/core/
// transformer/attention.py, mlp.py), and each expert has matrices of its own (transformer/moe/
// experts.py, TEGroupedMLP: weight0, weight1 and so on of Transformer Engine's GroupedLinear).
#pragma once

#include <optional>
#include <variant>

#include "simulator/graphs/operators.hpp"

namespace shardwise {

struct WeightTensors {
  int dense = 0, expert = 0;  // that are trained
  int narrow = 0;             // of these, whose products read 8 bits

  int all() const { return dense + expert; }
  friend WeightTensors operator+(const WeightTensors& a, const WeightTensors& b) {
    return {a.dense + b.dense, a.expert + b.expert, a.narrow + b.narrow};
  }
  friend WeightTensors operator*(int times, const WeightTensors& a) {
    return {times * a.dense, times * a.expert, times * a.narrow};
  }
};

inline WeightTensors weight_tensors(const LayerGraph& graph) {
  WeightTensors all;
  std::optional<TensorIndex> read;  // by the matrix before
  for (const Operator& op : graph.operators) {
    if (op.weight_gradient_elements == 0) continue;
    const GemmWork* product = nullptr;
    for (const Kernel& k : op.backward_weight)
      if (product == nullptr) product = std::get_if<GemmWork>(&k);
    if (product == nullptr) {  // of a norm, a bias
      ++all.dense;
      continue;
    }
    const bool joined = !op.inputs.empty() && read == op.inputs.front();
    if (!op.inputs.empty()) read = op.inputs.front();
    if (joined) continue;
    const int matrices = product->grouped ? static_cast<int>(product->batch) : 1;
    (product->grouped ? all.expert : all.dense) += matrices;
    if (bytes_per_element(product->dtype) < 2.0) all.narrow += matrices;
  }
  return all;
}

}  // namespace shardwise
