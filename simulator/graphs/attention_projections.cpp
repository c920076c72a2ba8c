#include "simulator/graphs/attention_projections.hpp"

#include <algorithm>

#include "simulator/graphs/heads_apart.hpp"
#include "simulator/graphs/rotary.hpp"
#include "simulator/graphs/sparse_attention.hpp"

namespace shardwise {
namespace {

TensorIndex normed_heads(GraphBuilder& b, TensorIndex t, std::int64_t rows, std::int64_t width,
                         std::int64_t head) {
  return b.workload().model.qk_norm == QkNorm::none ? t : b.head_norm(t, rows, width, head);
}

// Queries and gate come out of one projection, interleaved by head; both are copied out
// (transformers models/qwen3_next/modeling_qwen3_next.py, Qwen3NextAttention).
void split_gate(GraphBuilder& b, AttentionProjections& p, std::int64_t elements) {
  const double copy = 2 * bytes_of_elements(b, elements);
  const TensorIndex both = p.q;
  p.q = b.pointwise("split_query", {both}, {}, elements, copy, copy, 1);
  p.gate = b.pointwise("split_gate", {both}, {}, elements, copy, copy, 1);
}

// Megatron Core cuts q, k and v out of one projection, each group's queries beside its key and
// value. Where there are several groups of several queries, queries are copied out; where positions
// rotate, the gradients of all three are put together again (NVIDIA/Megatron-LM @d98e8a64dd
// megatron/core/transformer/attention.py:1912-1918; transformer_config.py:518-520 has
// fused_single_qkv_rope, which spares the latter and is off).
void cut_projection(GraphBuilder& b, const AttentionProjections& p, std::int64_t rows) {
  const Workload& w = b.workload();
  if (!w.framework.layers.sequence_first || w.model.position != PositionKind::rope) return;
  Operator& last = b.last();
  const std::int64_t queries = rows * p.heads * p.qk_dim;
  if (p.kv_heads > 1 && p.kv_heads < p.heads) {
    MemoryWork copy = one_by_one(2 * as_double(queries * b.element()), 1, as_double(queries));
    copy.plain = true;
    last.forward.push_back(copy);
  }
  const std::int64_t all = queries + 2 * rows * p.kv_heads * p.v_dim;
  MemoryWork joined = traffic(2 * as_double(all * b.element()), 1);
  joined.plain = true;
  last.backward.insert(last.backward.begin(), joined);
}

// Keys and values of this layer.
GlobalAttention heads_of(const Transformer& m, BlockKind kind) {
  if (m.global_attention && !kind.local_attention) return *m.global_attention;
  return {m.kv_heads, m.head_dim, false};
}

TensorIndex normed_values(GraphBuilder& b, TensorIndex v, std::int64_t rows, std::int64_t width) {
  if (!b.workload().model.value_norm) return v;
  const TensorIndex out = b.norm("value_norm", v, rows, width);
  b.count_other(-width);  // it has no weights
  b.last().weight_gradient_elements = 0;
  return out;
}

// What an earlier block has made and keeps: no memory here, but gradients, which are added to its.
TensorIndex borrowed(GraphBuilder& b, std::string_view name, std::int64_t elements) {
  const std::int64_t bytes = elements * b.element();
  const TensorIndex t = b.tensor_bytes(name, 0, MemoryCategory::temporaries, bytes);
  Operator op;
  op.name = name;
  op.outputs = {t};
  op.backward = {traffic(3 * as_double(bytes), 1)};
  b.add(std::move(op));
  return t;
}

// q, k and v of `x`, which was gathered from `normed`.
AttentionProjections project(GraphBuilder& b, TensorIndex x, TensorIndex normed, BlockKind kind) {
  const Transformer& m = b.workload().model;
  const AdapterTargets& on = b.workload().adapter.targets;
  const GlobalAttention sizes = heads_of(m, kind);
  const std::int64_t d = sizes.head_dim, rows = b.tokens();
  AttentionProjections p;
  p.heads = std::max<std::int64_t>(1, m.heads / b.tensor());
  p.kv_heads = std::max<std::int64_t>(1, sizes.kv_heads / b.tensor());
  p.qk_dim = p.v_dim = d;
  const bool gated_query = m.attention_gate && !m.code.gate_apart;
  const std::int64_t q_out = m.heads * d * (gated_query ? 2 : 1);
  const std::int64_t kv_out = p.kv_heads * d * b.tensor();  // replicated where TP exceeds kv heads
  if (b.own_code().fused_qkv) x = b.cast_input(x, rows * m.hidden);
  p.q = b.linear({"q", m.hidden, q_out, Cut::columns, m.biases.qkv, on.q}, x, rows);
  part_linear(b, "q", x, rows, m.hidden, p.heads);
  const std::int64_t queries = p.heads * d;
  if (kind.keys == KeySource::shared) {
    p.q = rotate(b, normed_heads(b, p.q, rows, queries, d), rows * queries, Rotated::query);
    p.k = borrowed(b, "shared_key", rows * p.kv_heads * d);
    p.v = borrowed(b, "shared_value", rows * p.kv_heads * d);
    return p;
  }
  const auto own_input = [&] { return b.gathered_again(x, normed, m.hidden); };
  const std::size_t others = b.operators();
  p.k = b.linear({"k", m.hidden, kv_out, Cut::columns, m.biases.qkv, on.k}, own_input(), rows);
  part_linear(b, "k", x, rows, m.hidden, p.kv_heads);
  p.v = sizes.values_are_keys ? p.k
                              : b.linear({"v", m.hidden, kv_out, Cut::columns, m.biases.qkv, on.v},
                                         own_input(), rows);
  part_linear(b, "v", x, rows, m.hidden, p.kv_heads);
  if (b.own_code().fused_qkv) b.join_launches(others);
  cut_projection(b, p, rows);
  p.v = normed_values(b, p.v, rows, p.kv_heads * d);
  if (gated_query) split_gate(b, p, rows * p.heads * d);
  if (m.attention_gate && !gated_query)
    p.gate = b.linear({"attention_gate", m.hidden, m.heads * d, Cut::columns, false, on.gate},
                      own_input(), rows);
  // Where positions rotate, queries and keys are tensors of their own.
  const bool view = b.own_code().fused_qkv && m.position == PositionKind::rope;
  if (b.workload().framework.attention.value_is_view_of_qkv || view)
    b.widen(p.v, rows * (p.heads + 2 * p.kv_heads) * d * b.element());
  if (b.workload().framework.attention.repeats_kv_before_rotary && p.kv_heads < p.heads) {
    p.k = repeated_heads(b, "repeat_k", p.k, rows * p.heads * d);
    p.v = repeated_heads(b, "repeat_v", p.v, rows * p.heads * d);
    p.kv_heads = p.heads;
  }
  p.q = rotate(b, normed_heads(b, p.q, rows, queries, d), rows * queries, Rotated::query);
  const std::int64_t keys = p.kv_heads * d;
  p.k = rotate(b, normed_heads(b, p.k, rows, keys, d), rows * keys, Rotated::key);
  if (b.workload().framework.attention.query_is_view_of_qkv && p.kv_heads == p.heads)
    b.widen(p.q, 3 * rows * p.heads * d * b.element());
  return p;
}

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): low-rank queries and
// keys/values, expanded to full heads before the kernel.
AttentionProjections project_latent(GraphBuilder& b, TensorIndex x, BlockKind kind) {
  const Transformer& m = b.workload().model;
  const LatentAttention& mla = *m.mla;
  const std::int64_t rows = b.tokens();
  AttentionProjections p;
  p.heads = p.kv_heads = std::max<std::int64_t>(1, m.heads / b.tensor());
  p.qk_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  p.v_dim = mla.v_head_dim;
  const LatentInputs l = latent_inputs(b, x);
  const std::int64_t expanded = m.heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  const TensorIndex kv = b.linear(
      {"kv_up", mla.kv_lora_rank, expanded, Cut::columns, false, b.workload().adapter.targets.v},
      l.normed, rows);
  p.q = rotate(b, l.query, rows * p.heads * p.qk_dim, Rotated::query);
  // Keys are the expanded part and the shared rotary part, copied side by side for every head.
  const std::int64_t keys = rows * p.heads * p.qk_dim, values = rows * p.heads * p.v_dim;
  const double copy = 2 * bytes_of_elements(b, keys);
  p.k = b.pointwise("keys", {kv, l.compressed}, {}, keys, copy, copy, 2);
  const double move = 2 * bytes_of_elements(b, values);
  // transformers' classes take a view of both (models/deepseek_v3/modeling_deepseek_v3.py).
  const bool views = b.eager() && b.workload().framework.layers.runs_transformers;
  p.v = views ? kv : b.pointwise("values", {kv}, {}, values, move, move, 1);
  if (kind.indexes_tokens) p.chosen = add_token_indexer(b, x, l.query_latent);
  return p;
}

}  // namespace

AttentionProjections project_attention(GraphBuilder& b, TensorIndex x, TensorIndex normed,
                                       BlockKind kind) {
  return b.workload().model.mla ? project_latent(b, x, kind) : project(b, x, normed, kind);
}

TensorIndex repeated_heads(GraphBuilder& b, std::string_view name, TensorIndex t,
                           std::int64_t elements) {
  const double moved = 2 * bytes_of_elements(b, elements);
  const TensorIndex copies = b.pointwise(name, {t}, {}, elements, moved, moved, 1);
  std::get<MemoryWork>(b.last().forward.front()).singly = elements;
  return copies;
}

}  // namespace shardwise
