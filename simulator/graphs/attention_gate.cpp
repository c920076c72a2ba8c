#include "simulator/graphs/attention_gate.hpp"

#include <algorithm>

namespace shardwise {

// Two kernels that keep the sigmoid and attention's output, or one that keeps
// what it reads.
TensorIndex gated_output(GraphBuilder& b, TensorIndex out, TensorIndex gate,
                         std::int64_t elements) {
  const double n = bytes_of_elements(b, elements);
  if (!b.eager())
    return b.pointwise("gated_output", {out, gate}, {out, gate}, elements, 3 * n, 5 * n, 1);
  const TensorIndex scale = b.pointwise("sigmoid", {gate}, {}, elements, 2 * n, 3 * n, 1);
  b.last().saves = {scale};
  return b.pointwise("gated_output", {out, scale}, {out, scale}, elements, 3 * n, 6 * n, 1);
}

TensorIndex head_gated_output(GraphBuilder& b, TensorIndex out, TensorIndex x,
                              std::int64_t elements) {
  const Transformer& m = b.workload().model;
  const TensorIndex gate = b.linear(
      {"head_gate", m.hidden, m.heads, Cut::columns, false, b.workload().adapter.targets.gate}, x,
      b.tokens());
  const std::int64_t values = b.tokens() * std::max(1, m.heads / b.tensor());
  const double n = bytes_of_elements(b, elements), each = bytes_of_elements(b, values);
  const TensorIndex scale = b.pointwise("sigmoid", {gate}, {}, values, 2 * each, 3 * each, 1);
  b.last().saves = {scale};
  return b.pointwise("gated_output", {out, scale}, {out, scale}, elements, 2 * n, 5 * n, 1);
}

}  // namespace shardwise
