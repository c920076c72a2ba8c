// Megatron Core with its kernels for DeepSeek's sparse attention (basetenlabs/Megatron-LM @0644539e
// megatron/core/transformer/experimental_attention_variant/: absorbed_mla.py, glm_dsa_fused.py
// @62d9a8fcc, dsa_kernels.py; FlashMLA forward, cuDNN backward). Kept per token by the kernel, in
// 16 bits: the query of every head, (r + p) each with a latent of r and a rotary part of p; one key
// of r + p; the output, r of every head; and the numbers of the chosen tokens, 4 bytes each.
#include "simulator/graphs/sparse_attention.hpp"

#include <algorithm>

#include "simulator/graphs/ring_attention.hpp"

namespace shardwise {
namespace {

// One product for each head, [rows, in] x [in, out], with a copy of its result that is contiguous.
// Its weights are those of "kv_up".
TensorIndex product_of_heads(GraphBuilder& b, std::string_view name, TensorIndex x,
                             std::int64_t heads, std::int64_t in, std::int64_t out) {
  const std::int64_t rows = b.tokens();
  const DType dtype = b.workload().product_dtype();
  const TensorIndex y = b.tensor(name, rows * heads * out);
  Operator op;
  op.name = name;
  op.kind = OperatorKind::matmul;
  op.inputs = {x};
  op.outputs = {y};
  op.saves = {x};
  const double copy = 2 * bytes_of_elements(b, rows * heads * out);
  op.forward = {GemmWork{rows, out, in, heads, dtype}, traffic(copy, 1)};
  op.backward = {GemmWork{rows, in, out, heads, dtype}, traffic(copy, 1)};
  if (b.trains_base() || b.workload().adapter.targets.v)
    op.backward_weight = {weight_gradient(in, out, rows, dtype, heads)};
  op.forward_temporary = Bytes(rows * heads * out * b.element());
  b.add(std::move(op));
  return y;
}

// The choice as the kernel reads it, the numbers of rows over all sequences. On the way a copy of
// them (4 bytes), which of them count (1), and two of 8 bytes (dsa_kernels.py,
// build_flat_topk_idxs, local_to_global_flat).
TensorIndex flat_rows(GraphBuilder& b, std::int64_t chosen, std::vector<TensorIndex> inputs) {
  const TensorIndex rows =
      b.tensor_bytes("chosen_rows", 4 * chosen, MemoryCategory::temporaries, 0);
  Operator op;
  op.name = "chosen_rows";
  op.inputs = std::move(inputs);
  op.outputs = {rows};
  op.forward = {traffic(50 * as_double(chosen), 7)};
  op.forward_temporary = Bytes(17 * chosen);
  b.add(std::move(op));
  return rows;
}

}  // namespace

bool attends_sparsely(const GraphBuilder& b) {
  return b.workload().model.indexer && b.workload().framework.attention.indexer_slice;
}

LatentInputs latent_inputs(GraphBuilder& b, TensorIndex x) {
  const Transformer& m = b.workload().model;
  const LatentAttention& mla = *m.mla;
  const AdapterTargets& on = b.workload().adapter.targets;
  const std::int64_t rows = b.tokens();
  const std::int64_t q_out = m.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim);
  LatentInputs l;
  l.query_latent = x;
  if (mla.q_lora_rank) {
    const std::int64_t rank = *mla.q_lora_rank;
    const TensorIndex down = b.linear({"q_down", m.hidden, rank, Cut::none, false, on.q}, x, rows);
    l.query_latent = b.norm("q_norm", down, rows, rank);
    l.query = b.linear({"q_up", rank, q_out, Cut::columns, false, on.q}, l.query_latent, rows);
  } else {
    l.query = b.linear({"q", m.hidden, q_out, Cut::columns, false, on.q}, x, rows);
  }
  const std::int64_t latent = mla.kv_lora_rank;
  l.compressed = b.linear(
      {"kv_down", m.hidden, latent + mla.qk_rope_head_dim, Cut::none, false, on.k}, x, rows);
  l.normed = b.norm("kv_norm", l.compressed, rows, latent);
  return l;
}

TensorIndex add_sparse_attention(GraphBuilder& b, TensorIndex x, BlockKind kind) {
  const Workload& w = b.workload();
  const LatentAttention& mla = *w.model.mla;
  const std::int64_t rows = b.tokens(), latent = mla.kv_lora_rank;
  const std::int64_t heads = std::max<std::int64_t>(1, w.model.heads / b.tensor());
  const std::int64_t width = latent + mla.qk_rope_head_dim;
  const LatentInputs l = latent_inputs(b, x);
  // Its weights, with an adapter folded into them: the products are those of heads below.
  const std::int64_t expanded = w.model.heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  const TensorIndex folded =
      b.linear({"kv_up", latent, expanded, Cut::columns, false, w.adapter.targets.v}, l.normed, 1);
  const TensorIndex absorbed =
      product_of_heads(b, "absorbed_query", l.query, heads, mla.qk_nope_head_dim, latent);
  const double queries = 2 * bytes_of_elements(b, rows * heads * width);
  const TensorIndex query = b.pointwise("query", {absorbed, l.query, folded}, {},
                                        rows * heads * width, queries, queries, 2);
  const double keys = 2 * bytes_of_elements(b, rows * width);
  TensorIndex key = b.pointwise("keys", {l.normed, l.compressed}, {}, rows * width, keys, keys, 2);
  const std::int64_t seen = rows * b.plan().context;
  const RingOperands ring{rows * heads * width, rows * width, rows * heads * latent};
  std::vector<TensorIndex> inputs{query, key};
  if (b.plan().context > 1) {  // keys of the whole sequence
    const double all = bytes_of_elements(b, seen * width);
    key = b.pointwise("gathered_keys", {key}, {}, seen * width, all, all, 1);
    b.last().kind = OperatorKind::communication;
    b.last().forward = context_exchange(b, ring, false);
    b.last().backward = context_exchange(b, ring, true);
    inputs = {query, key};
  }
  const std::int64_t best = std::min<std::int64_t>(w.model.indexer->top_k, w.sequence);
  std::vector<TensorIndex> choice;
  if (kind.indexes_tokens) choice = {add_token_indexer(b, x, l.query_latent)};
  inputs.push_back(flat_rows(b, rows * best, choice));

  const TensorIndex out = b.tensor("attention", rows * heads * latent);
  const TensorIndex lse =
      b.tensor_bytes("log_sum_exp", 4 * rows * heads, MemoryCategory::activations, 0);
  Operator op;
  op.name = "attention";
  op.kind = OperatorKind::attention;
  op.inputs = inputs;
  op.outputs = {out, lse};
  op.saves = inputs;
  op.saves.insert(op.saves.end(), {out, lse});
  AttentionWork work;
  work.batch = std::int64_t{b.plan().microbatch} * w.sequences_per_sample;
  work.heads = static_cast<int>(heads);
  work.kv_heads = 1;
  work.head_dim = static_cast<int>((width + latent) / 2);
  work.queries = w.sequence / b.plan().context;
  work.keys = best;
  work.causal = false;
  work.kernel = w.framework.attention.kernel;
  op.forward = {work};
  work.backward = true;
  op.backward = {work};
  b.add(std::move(op));
  return product_of_heads(b, "values", out, heads, latent, mla.v_head_dim);
}

}  // namespace shardwise
