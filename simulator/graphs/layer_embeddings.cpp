// Embeddings of every layer's own (Gemma 4 E2B and E4B): one table whose rows hold a piece of `e`
// values for each of L layers, to which a normed projection of the token's embedding is added. A
// block multiplies its piece by a gate and adds what a projection makes of it.
//
// Kept per token: L e values, of which each block's product keeps a view; in a block the gate, its
// GELU, the product and what a norm keeps (transformers 5.24, models/gemma4/modeling_gemma4.py,
// Gemma4TextModel.get_per_layer_inputs and project_per_layer_inputs, Gemma4TextDecoderLayer).
#include <cstdint>
#include <string_view>
#include <utility>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

std::int64_t all_layers_width(const Transformer& m) {
  return std::int64_t{m.layers} * m.layer_embeddings->width;
}

// Who adapts every linear of a block adapts these too (PEFT's "all-linear").
bool adapts_all(const AdapterTargets& on) {
  return on.q && on.k && on.v && on.o && on.gate && on.up && on.down;
}

}  // namespace

LinearSpec uncut_linear(const GraphBuilder& b, std::string_view name, std::int64_t in,
                        std::int64_t out) {
  LinearSpec spec{name, in, out};
  spec.adapted = adapts_all(b.workload().adapter.targets);
  return spec;
}

void add_layer_embeddings(GraphBuilder& b, TensorIndex ids, TensorIndex embedded, bool trained) {
  const Transformer& m = b.workload().model;
  const std::int64_t width = all_layers_width(m), rows = b.sequence_tokens();
  const std::int64_t elements = rows * width,
                     table = std::int64_t{m.layer_embeddings->vocab} * width;
  const double n = bytes_of_elements(b, elements);
  b.count_other(table);
  TensorIndex pieces = b.pointwise("layer_embedding", {ids}, {}, elements, 2 * n, 3 * n, 1);
  Operator& lookup = b.last();
  lookup.kind = OperatorKind::lookup;
  std::get<MemoryWork>(lookup.forward.front()).access = MemoryAccess::gather;
  std::get<MemoryWork>(lookup.backward.front()).access = MemoryAccess::gather;
  lookup.weight_gradient_elements = trained ? table : 0;
  if (trained) lookup.backward_weight = {traffic(as_double(table * b.gradient_element()), 1)};
  pieces = b.pointwise("layer_embedding_scale", {pieces}, {}, elements, 2 * n, 2 * n, 1);
  const TensorIndex read =
      b.linear(uncut_linear(b, "layer_input_projection", m.hidden, width), embedded, rows);
  const TensorIndex scaled =
      b.pointwise("layer_input_scale", {read}, {}, elements, 2 * n, 2 * n, 1);
  const TensorIndex normed =
      b.norm("layer_embedding_norm", scaled, rows * m.layers, m.layer_embeddings->width);
  const TensorIndex sum =
      b.pointwise("layer_input_sum", {normed, pieces}, {}, elements, 3 * n, 0, 1);
  const TensorIndex all = b.pointwise("layer_inputs", {sum}, {}, elements, 2 * n, 2 * n, 1);
  b.last().saves = {all};
}

// nanochat's tables of values, [vocabulary, key-value width] each: a layer keeps the rows it looked
// up for the gradient of their gate, compiled or not (karpathy/nanochat @92d63d4 nanochat/gpt.py:
// 96, 192, 501; counted by PyTorch 2.15's saved_tensors_hooks on a CPU: 1.0 of them per layer).
void add_value_embeddings(GraphBuilder& b, TensorIndex ids, bool trained) {
  const Transformer& m = b.workload().model;
  const std::int64_t width = std::int64_t{m.value_embeddings->tables} * m.kv_heads * m.head_dim;
  const std::int64_t table = padded_vocabulary(b.workload(), b.plan()) / b.tensor() * width,
                     elements = b.sequence_tokens() * width;
  const double n = bytes_of_elements(b, elements);
  b.count_table(table);
  const TensorIndex rows = b.pointwise("value_embeddings", {ids}, {}, elements, 2 * n, 3 * n,
                                       m.value_embeddings->tables);
  Operator& lookup = b.last();
  lookup.kind = OperatorKind::lookup;
  lookup.saves = {rows};
  std::get<MemoryWork>(lookup.forward.front()).access = MemoryAccess::gather;
  std::get<MemoryWork>(lookup.backward.front()).access = MemoryAccess::gather;
  lookup.weight_gradient_elements = trained ? table : 0;
  if (trained) lookup.backward_weight = {traffic(as_double(table * b.gradient_element()), 1)};
}

TensorIndex gated_layer_input(GraphBuilder& b, TensorIndex x) {
  const Transformer& m = b.workload().model;
  const std::int64_t width = m.layer_embeddings->width, rows = b.sequence_tokens();
  const double n = bytes_of_elements(b, rows * width);
  const double all = bytes_of_elements(b, rows * all_layers_width(m));
  const TensorIndex gate = b.linear(uncut_linear(b, "layer_input_gate", m.hidden, width), x, rows);
  const TensorIndex open = b.pointwise("gelu", {gate}, {gate}, rows * width, 2 * n, 3 * n, 1);
  // Backward the gradient of a piece becomes one of all of them, zero elsewhere, and is added to
  // those of the layers behind (PyTorch torch/csrc/autograd/FunctionsManual.cpp, select_backward).
  const TensorIndex let_in =
      b.pointwise("layer_input", {open}, {open}, rows * width, 3 * n, 8 * n + 4 * all, 1);
  std::get<MemoryWork>(b.last().backward.front()).launches = 5;
  b.last().backward_temporary = ceil_bytes(all);
  const TensorIndex wide =
      b.linear(uncut_linear(b, "layer_input_out", width, m.hidden), let_in, rows);
  return b.norm("layer_input_norm", wide, rows, m.hidden);
}

TensorIndex add_layer_input(GraphBuilder& b, TensorIndex x) {
  const std::int64_t elements = b.sequence_tokens() * b.workload().model.hidden;
  const TensorIndex out = b.residual_add(x, gated_layer_input(b, x), elements);
  // The layer's output is scaled where it lies, its gradient into a tensor of its own.
  const double stream = as_double(b.bytes_of(out));
  b.last().forward.push_back(traffic(2 * stream, 1));
  b.last().backward.push_back(traffic(2 * stream, 1));
  return out;
}

}  // namespace shardwise
