// A Gated DeltaNet mixer (arXiv 2412.06464): projections to queries, keys, values, the output's
// gate and two numbers per head, a short convolution, the gated delta rule in chunks, the gated
// norm, one projection back.
//
// The kernels are those of flash-linear-attention's chunk_gated_delta_rule, which transformers
// (models/qwen3_next/modeling_qwen3_next.py) and Megatron-LM (megatron/core/ssm/gated_delta_net)
// call: fla-org/flash-linear-attention @bc3b101dcb fla/ops/gated_delta_rule/chunk.py. It keeps
// normed queries and keys, values, the decays and the solved triangles of every chunk, and makes
// the states again in backward.
//
// Kimi Delta Attention (arXiv 2510.26692; fla/ops/kda/chunk.py) has a decay for every value of a
// key, made by PyTorch's operators in fp32 and summed up within a chunk (transformers 5.23,
// models/kimi_linear/modeling_kimi_linear.py, KimiLinearForgetGate), and keeps scores of queries
// with keys beside the triangles.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/graphs/delta_by_operators.hpp"
#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {
namespace {

// What one rank's share of the mixer handles.
struct DeltaShape {
  std::int64_t rows, chunks, length;  // tokens, chunks of them, tokens per chunk
  std::int64_t key_heads, value_heads, key_dim, value_dim;
  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  std::int64_t spread_keys() const { return value_heads * key_dim; }  // one copy per value head
  std::int64_t convolved() const { return 2 * keys() + values(); }
  std::int64_t states() const { return chunks * value_heads * key_dim * value_dim; }
};

DeltaShape delta_shape(const GraphBuilder& b) {
  const DeltaNet& d = *b.workload().model.delta;
  const std::int64_t length = std::min<std::int64_t>(d.chunk, b.tokens());
  return {b.tokens(),
          (b.tokens() + length - 1) / length,
          length,
          std::max(1, d.key_heads / b.tensor()),
          std::max(1, d.value_heads / b.tensor()),
          d.key_dim,
          d.value_dim};
}

// One product per chunk and value head, m x n over k, each the chunk, the keys or the values.
enum class Side { chunk, key, value };
struct ChunkProduct {
  Side m, n, k;
};
constexpr Side L = Side::chunk, K = Side::key, V = Side::value;

// w and u from the triangles; the states that chunks hand on, and what they subtract.
constexpr std::array<ChunkProduct, 4> made_again{{{L, K, L}, {L, V, L}, {K, V, L}, {L, V, K}}};
// Keys with keys, and the output: from the states, and from the scores within the chunk.
constexpr std::array<ChunkProduct, 4> forward_only{{{L, L, K}, {L, V, K}, {L, L, K}, {L, V, L}}};
// chunk_bwd_dv_local, its dhu and its dqkwg, prepare_wy_repr_bwd.
constexpr std::array<ChunkProduct, 20> backward_only{
    {{L, L, K}, {L, V, L}, {L, V, K}, {K, V, L}, {K, V, L}, {L, L, V}, {L, K, V},
     {L, K, V}, {L, K, V}, {L, K, L}, {L, K, L}, {L, L, K}, {L, K, L}, {L, L, V},
     {L, V, L}, {L, L, L}, {L, L, L}, {L, L, K}, {L, K, L}, {L, K, L}}};

void add_delta_products(const GraphBuilder& b, const DeltaShape& s,
                        std::span<const ChunkProduct> products, std::vector<Kernel>& to) {
  const auto size = [&](Side side) {
    return side == Side::chunk ? s.length : side == Side::key ? s.key_dim : s.value_dim;
  };
  for (const ChunkProduct& p : products)
    to.push_back(GemmWork{size(p.m), size(p.n), size(p.k), s.chunks * s.value_heads,
                          b.workload().activation_dtype()});
}

// Beside the products' own operands: the convolution, queries, keys and values copied out of its
// result, the norms of queries and keys, and ten passes over two fp32 numbers per head.
double delta_forward_bytes(const GraphBuilder& b, const DeltaShape& s) {
  const auto e = static_cast<double>(b.element());
  return e * static_cast<double>(s.rows * (4 * s.convolved() + 4 * s.keys())) +
         4.0 * 10 * static_cast<double>(s.rows * s.value_heads);
}

// Gradients of queries and keys are summed over the value heads they serve and added twice, go
// through their norms, are put together and back through the convolution.
double delta_backward_bytes(const GraphBuilder& b, const DeltaShape& s) {
  const auto e = static_cast<double>(b.element());
  return e * static_cast<double>(s.rows *
                                 (5 * s.convolved() + 6 * s.keys() + 5 * s.spread_keys())) +
         4.0 * 20 * static_cast<double>(s.rows * s.value_heads);
}

TensorIndex delta_rule(GraphBuilder& b, TensorIndex projected, std::vector<TensorIndex> rates,
                       const DeltaShape& s) {
  const bool by_value = b.workload().model.delta->gate_rank.has_value();
  const std::int64_t triangles = s.rows * s.value_heads * s.length * (by_value ? 2 : 1);
  const TensorIndex q = b.tensor("delta_query", s.rows * s.keys());
  const TensorIndex k = b.tensor("delta_key", s.rows * s.keys());
  const TensorIndex v = b.tensor("delta_value", s.rows * s.values());
  const TensorIndex solved = b.tensor("delta_triangles", triangles);
  // Decay and rate in fp32, and what softplus and sigmoid keep.
  const std::int64_t summed = by_value ? 4 * s.rows * s.keys() : 0;  // within each chunk
  const TensorIndex gates =
      b.tensor_bytes("delta_rates", (by_value ? 4 : 16) * s.rows * s.value_heads + summed,
                     MemoryCategory::activations, 0);
  const TensorIndex out = b.tensor("delta", s.rows * s.values());
  Operator op;
  op.name = "delta_rule";
  op.inputs = rates;
  op.inputs.insert(op.inputs.begin(), projected);
  op.outputs = {q, k, v, solved, gates, out};
  op.saves = op.inputs;
  op.saves.insert(op.saves.end(), {q, k, v, solved, gates});
  exchange_tokens_for_heads(b, s.rows * (s.convolved() + 2 * s.value_heads), op.forward);
  add_delta_products(b, s, forward_only, op.forward);
  add_delta_products(b, s, made_again, op.forward);
  op.forward.push_back(
      MemoryWork{ceil_bytes(delta_forward_bytes(b, s)), 14, MemoryAccess::streaming});
  exchange_tokens_for_heads(b, s.rows * s.values(), op.forward);
  exchange_tokens_for_heads(b, s.rows * s.values(), op.backward);
  add_delta_products(b, s, made_again, op.backward);
  add_delta_products(b, s, backward_only, op.backward);
  op.backward.push_back(
      MemoryWork{ceil_bytes(delta_backward_bytes(b, s)), 24, MemoryAccess::streaming});
  exchange_tokens_for_heads(b, s.rows * (s.convolved() + 2 * s.value_heads), op.backward);
  // Forward: the convolution's result, w, u, the new values and the states. Backward: those again,
  // the states' gradients, and the gradients of q, k, w and v for every value head.
  const std::int64_t wide = s.rows * (s.spread_keys() + 2 * s.values()) + s.states();
  op.forward_temporary = Bytes(b.element() * (s.rows * s.convolved() + wide));
  op.backward_temporary =
      Bytes(b.element() * (wide + s.states() + s.rows * (3 * s.spread_keys() + s.values())));
  const DeltaNet& whole = *b.workload().model.delta;
  const std::int64_t weights =
      whole.convolution * s.convolved() + (by_value ? s.value_heads + s.keys() : 2 * s.value_heads);
  b.count_other(weights);
  op.weight_gradient_elements = b.trains_base() ? weights : 0;
  b.add(std::move(op));
  return out;
}

// The same operator by operator, in fp32, as transformers writes it (5.23,
// models/qwen3_next/modeling_qwen3_next.py, Qwen3NextRMSNormGated): autograd keeps the fp32 copies
// of x and of the gate, the normed x in 16 bits for a trained weight, that times the weight (fp32
// where the weight is), and the gate's SiLU. Bytes per value as its lines move them in 16 bits:
// forward x copied 6, squared 8, averaged 4, scaled 8, copied 6, times the weight 6, the gate
// copied 6, its SiLU 8, the product 10, copied 6; backward twice as much, taken from each product's
// having two gradients.
TensorIndex written_out_norm(GraphBuilder& b, TensorIndex x, TensorIndex gate, std::int64_t n) {
  const std::int64_t wide = casts_weights(b.workload(), b.plan()) ? 4 : b.element();
  const auto kept = [&](std::string_view name, std::int64_t each) {
    return b.tensor_bytes(name, each * n, MemoryCategory::temporaries, 0);
  };
  Operator op;
  op.name = "delta_norm";
  op.inputs = {x, gate};
  const bool half = b.element() == 2;
  const TensorIndex normed = b.tensor("delta_normed", n);
  op.outputs = {normed, kept("delta_weighted", wide), kept("delta_silu", 4)};
  if (half) op.outputs.insert(op.outputs.end(), {kept("delta_fp32", 4), kept("delta_gate", 4)});
  op.saves.assign(op.outputs.begin() + (b.trains_base() ? 0 : 1), op.outputs.end());
  if (!half) op.saves.insert(op.saves.end(), {x, gate});
  const TensorIndex out = b.tensor("delta_gated", n);
  op.outputs.push_back(out);
  const auto values = static_cast<double>(n);
  op.forward = {MemoryWork{ceil_bytes(68 * values), 12, MemoryAccess::reduction}};
  op.backward = {MemoryWork{ceil_bytes(136 * values), 20, MemoryAccess::reduction}};
  op.forward_temporary = Bytes(8 * n);
  op.backward_temporary = Bytes(8 * n);
  b.add(std::move(op));
  return out;
}

// norm(x) * silu(gate), a norm over each head: one kernel that keeps both.
TensorIndex gated_norm(GraphBuilder& b, TensorIndex x, TensorIndex gate, const DeltaShape& s) {
  const std::int64_t n = s.rows * s.values();
  const double bytes = static_cast<double>(n * b.element());
  const bool written_out = b.eager() && b.workload().framework.layers.runs_transformers;
  const TensorIndex out =
      written_out ? written_out_norm(b, x, gate, n)
                  : b.pointwise("delta_norm", {x, gate}, {x, gate}, n, 3 * bytes, 5 * bytes, 1);
  b.count_other(s.value_dim);
  b.last().weight_gradient_elements = b.trains_base() ? s.value_dim : 0;
  return out;
}

}  // namespace

namespace {

// A linear through a low rank, of whose two parts the first is whole on every tensor rank.
TensorIndex low_rank(GraphBuilder& b, std::string_view down, std::string_view up, TensorIndex x,
                     const DeltaShape& s, std::int64_t out) {
  const Transformer& m = b.workload().model;
  const std::int64_t rank = *m.delta->gate_rank;
  const bool adapted = b.workload().adapter.targets.up;
  const TensorIndex narrow = b.linear({down, m.hidden, rank, Cut::none, false, adapted}, x, s.rows);
  return b.linear({up, rank, out, Cut::columns, false, adapted}, narrow, s.rows);
}

// -exp(A) softplus(x + bias) in fp32: the exponential, one more than it, which values are left as
// they are, softplus, and the product, which the rule reads.
TensorIndex forget(GraphBuilder& b, TensorIndex x, const DeltaShape& s) {
  const std::int64_t n = s.rows * s.keys();
  const TensorIndex kept =
      b.tensor_bytes("forget_softplus", 13 * n, MemoryCategory::activations, 0);
  const TensorIndex out = b.tensor_bytes("forget", 4 * n, MemoryCategory::activations, 4 * n);
  Operator op;
  op.name = "forget_gate";
  op.inputs = {x};
  op.outputs = {kept, out};
  op.saves = {kept};
  op.forward = {traffic(62 * as_double(n), 8)};
  op.backward = {traffic(70 * as_double(n), 10)};
  op.forward_temporary = Bytes(8 * n);
  op.backward_temporary = Bytes(8 * n);
  b.add(std::move(op));
  return out;
}

}  // namespace

TensorIndex add_delta(GraphBuilder& b, TensorIndex normed) {
  const Transformer& m = b.workload().model;
  const DeltaNet& d = *m.delta;
  const AdapterTargets& on = b.workload().adapter.targets;
  const TensorIndex x = b.gather_sequence(normed, m.hidden);
  const DeltaShape s = delta_shape(b);
  const auto projection = [&](std::string_view name, std::int64_t out) {
    return b.linear({name, m.hidden, out, Cut::columns, false, on.up}, x, s.rows);
  };
  const TensorIndex projected = projection("delta_in", d.convolved());
  std::vector<TensorIndex> rates;
  TensorIndex gate;
  if (d.gate_rank) {
    rates = {forget(b, low_rank(b, "forget_down", "forget_up", x, s, d.keys()), s),
             projection("delta_rates_in", d.value_heads)};
    gate = low_rank(b, "delta_gate_down", "delta_gate_up", x, s, d.values());
  } else {
    gate = projection("delta_gate", d.values());
    rates = {projection("delta_rates_in", 2 * d.value_heads)};
  }
  const TensorIndex mixed = runs_delta_by_operators(b)
                                ? add_delta_by_operators(b, projected, rates.front())
                                : delta_rule(b, projected, std::move(rates), s);
  const TensorIndex scaled = gated_norm(b, mixed, gate, s);
  const TensorIndex out =
      b.linear({"delta_out", d.values(), m.hidden, Cut::rows, false, on.down}, scaled, s.rows);
  return b.reduce_partial(out, m.hidden);
}

}  // namespace shardwise
