// Attention: projections, rotary positions, the attention kernel, the output projection.
//
// Saved per token without recomputation (flash kernel, 16 bits): normed input 2h, q 2ad, k and v
// 2kd each, output 2ad, log-sum-exp 4a. The eager kernel keeps the scores' softmax, and with
// attention dropout its mask and result: 5 a s bytes per token as in Megatron (arXiv 2205.05198,
// section 4.1).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/graphs/attention_gate.hpp"
#include "simulator/graphs/eager_scores.hpp"
#include "simulator/graphs/heads_apart.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/narrow_attention.hpp"
#include "simulator/graphs/plain_softmax.hpp"
#include "simulator/graphs/ring_attention.hpp"
#include "simulator/graphs/rotary.hpp"
#include "simulator/graphs/sparse_attention.hpp"
#include "simulator/graphs/unfused_softmax.hpp"
#include "simulator/graphs/written_out_attention.hpp"

namespace shardwise {
namespace {

struct Projections {
  TensorIndex q = 0, k = 0, v = 0;
  std::optional<TensorIndex> gate;       // of attention's output, where the model has one
  std::int64_t heads = 0, kv_heads = 0;  // on this rank
  std::int64_t qk_dim = 0, v_dim = 0;
  std::optional<TensorIndex> chosen;  // a mask of what an indexer lets queries see
};

TensorIndex normed_heads(GraphBuilder& b, TensorIndex t, std::int64_t rows, std::int64_t width,
                         std::int64_t head) {
  return b.workload().model.qk_norm == QkNorm::none ? t : b.head_norm(t, rows, width, head);
}

// Keys or values copied out for every query head that reads them.
TensorIndex repeated(GraphBuilder& b, std::string_view name, TensorIndex t, std::int64_t elements) {
  const double moved = 2 * bytes_of_elements(b, elements);
  const TensorIndex copies = b.pointwise(name, {t}, {}, elements, moved, moved, 1);
  std::get<MemoryWork>(b.last().forward.front()).singly = elements;
  return copies;
}

// One key head seen as many: a view, whose gradient is summed over them.
TensorIndex spread(GraphBuilder& b, std::string_view name, TensorIndex t, std::int64_t elements) {
  const std::int64_t bytes = elements * b.element();
  const TensorIndex view = b.tensor_bytes(name, 0, MemoryCategory::temporaries, bytes);
  Operator op;
  op.name = name;
  op.inputs = {t};
  op.outputs = {view};
  op.saves = {t};
  op.backward = {traffic(as_double(bytes), 1, MemoryAccess::reduction)};
  b.add(std::move(op));
  return view;
}

// Queries and gate come out of one projection, interleaved by head; both are copied out
// (transformers models/qwen3_next/modeling_qwen3_next.py, Qwen3NextAttention).
void split_gate(GraphBuilder& b, Projections& p, std::int64_t elements) {
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
void cut_projection(GraphBuilder& b, const Projections& p, std::int64_t rows) {
  const Workload& w = b.workload();
  if (!w.framework.sequence_first || w.model.position != PositionKind::rope) return;
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
Projections project(GraphBuilder& b, TensorIndex x, TensorIndex normed, BlockKind kind) {
  const Transformer& m = b.workload().model;
  const AdapterTargets& on = b.workload().adapter.targets;
  const GlobalAttention sizes = heads_of(m, kind);
  const std::int64_t d = sizes.head_dim, rows = b.tokens();
  Projections p;
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
  if (b.workload().framework.value_is_view_of_qkv || view)
    b.widen(p.v, rows * (p.heads + 2 * p.kv_heads) * d * b.element());
  if (b.workload().framework.repeats_kv_before_rotary && p.kv_heads < p.heads) {
    p.k = repeated(b, "repeat_k", p.k, rows * p.heads * d);
    p.v = repeated(b, "repeat_v", p.v, rows * p.heads * d);
    p.kv_heads = p.heads;
  }
  p.q = rotate(b, normed_heads(b, p.q, rows, queries, d), rows * queries, Rotated::query);
  const std::int64_t keys = p.kv_heads * d;
  p.k = rotate(b, normed_heads(b, p.k, rows, keys, d), rows * keys, Rotated::key);
  if (b.workload().framework.query_is_view_of_qkv && p.kv_heads == p.heads)
    b.widen(p.q, 3 * rows * p.heads * d * b.element());
  return p;
}

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): low-rank queries and
// keys/values, expanded to full heads before the kernel.
Projections project_latent(GraphBuilder& b, TensorIndex x, BlockKind kind) {
  const Transformer& m = b.workload().model;
  const LatentAttention& mla = *m.mla;
  const std::int64_t rows = b.tokens();
  Projections p;
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
  const bool views = b.eager() && b.workload().framework.runs_transformers;
  p.v = views ? kv : b.pointwise("values", {kv}, {}, values, move, move, 1);
  if (kind.indexes_tokens) p.chosen = add_token_indexer(b, x, l.query_latent);
  return p;
}

struct KernelOperands {
  Projections p;
  TensorIndex k = 0, v = 0;  // as the kernel reads them: expanded to all heads where asked
  bool written_out = false;  // no kernel, but PyTorch's own operators
};

// Whether a window reaches the kernel as a mask (Framework::masks_windows).
bool masks_window(const GraphBuilder& b, BlockKind kind) {
  const Workload& w = b.workload();
  return w.framework.masks_windows && w.framework.attention == AttentionKernel::flash &&
         kind.local_attention && w.sequence >= w.model.sliding_window.value_or(w.sequence);
}

// The widest head that PyTorch's flash kernel takes (aten/src/ATen/native/transformers/cuda/
// sdp_utils.cpp, check_head_dim_size_flash).
constexpr std::int64_t widest_flash_head = 256;

bool too_wide_for_flash(const GraphBuilder& b, const Projections& p) {
  return b.workload().framework.attention == AttentionKernel::flash && p.qk_dim > widest_flash_head;
}

// Keys and values are copied out for every query head where the kernel does not group them (with a
// mask, or beyond the flash kernel's width); of one key head that is a view.
KernelOperands expanded(GraphBuilder& b, const Projections& p, BlockKind kind) {
  KernelOperands o{p, p.k, p.v};
  const Framework& f = b.workload().framework;
  const bool ungrouped = masks_window(b, kind) || too_wide_for_flash(b, p);
  if ((f.attends_by_operators || !ungrouped) && writes_attention_out(b, p.heads, p.kv_heads)) {
    o.p.q = widened(b, "widen_q", p.q, b.tokens() * p.heads * p.qk_dim);
    o.k = widened(b, "widen_k", p.k, b.tokens() * p.heads * p.qk_dim);
    o.v = widened(b, "widen_v", p.v, b.tokens() * p.heads * p.v_dim);
    o.p.kv_heads = p.heads;
    o.written_out = true;
    return o;
  }
  const bool eager = f.attention == AttentionKernel::eager;
  if (p.kv_heads >= p.heads || !(eager || ungrouped || f.attention_repeats_kv)) return o;
  const auto all_heads = p.kv_heads == 1 && !eager ? spread : repeated;
  o.k = all_heads(b, "repeat_k", p.k, b.tokens() * p.heads * p.qk_dim);
  o.v = all_heads(b, "repeat_v", p.v, b.tokens() * p.heads * p.v_dim);
  o.p.kv_heads = p.heads;
  return o;
}

bool writes_softmax_out(const GraphBuilder& b) {
  return b.eager() && b.workload().framework.plain_softmax;
}

// Products with queries and keys, and with values, are equally many going forward. FlashAttention
// takes heads of one width only, so that values are padded (Megatron-LM and transformers do).
std::int64_t mean_head_dim(const Projections& p, AttentionKernel kernel) {
  const bool apart = kernel == AttentionKernel::cudnn || kernel == AttentionKernel::eager;
  return apart ? (p.qk_dim + p.v_dim) / 2 : std::max(p.qk_dim, p.v_dim);
}

AttentionWork kernel_shape(const GraphBuilder& b, const Projections& p, BlockKind kind) {
  const Workload& w = b.workload();
  AttentionWork work;
  work.batch = std::int64_t{b.plan().microbatch} * w.sequences_per_sample;
  work.heads = static_cast<int>(p.heads);
  work.kv_heads = static_cast<int>(p.kv_heads);
  work.head_dim = static_cast<int>(mean_head_dim(p, w.framework.attention));
  // Context parallelism balances causal work over the ranks, so each computes an equal share of the
  // pairs: all keys, or all of a window, for 1/context of the queries.
  work.queries = w.sequence / b.plan().context;
  work.context = b.plan().context;
  work.keys = w.sequence;
  if (kind.local_attention && w.model.sliding_window)
    work.keys = std::min<std::int64_t>(work.keys, *w.model.sliding_window);
  work.restarts = kind.local_attention && w.model.window_restarts;
  work.causal = w.causal;
  work.deterministic = w.framework.deterministic;
  work.kernel = w.framework.attention;
  // A mask of its own keeps scaled_dot_product_attention from the flash kernel, and the kernel that
  // takes it computes what it masks, windows too (PyTorch 2.5.1 aten/src/ATen/native/transformers/
  // cuda/sdp_utils.cpp, check_for_attn_mask).
  const bool given = w.framework.masks_padding || w.model.indexer;
  const bool masked = (given && work.kernel != AttentionKernel::eager) || masks_window(b, kind);
  if (too_wide_for_flash(b, p)) work.kernel = AttentionKernel::memory_efficient;
  if (masked) {
    work.kernel = AttentionKernel::memory_efficient;
    work.keys = w.sequence;
    work.causal = false;
    work.masked = true;
  }
  work.products_alone = work.kernel == AttentionKernel::eager &&
                        (writes_softmax_out(b) || leaves_fused_softmax(b, work));
  work.fp32_operands = b.element() == 4;
  work.tf32_products = b.workload().compute == DType::tf32;
  work.narrow_operands = attends_narrow(b, work);
  return work;
}

// What the eager path runs beside its products and its softmax: dropout of the weights (16 bits in
// and out, a byte of mask) in both directions; the context, made per head, is copied together, and
// so is its gradient; backward, the gradients of q, k and v are put into that of the fused
// projection (bigscience-workshop/Megatron-DeepSpeed @8387ae17 megatron/model/transformer.py,
// ParallelAttention.forward).
void run_beside_scores(const GraphBuilder& b, Operator& op, const AttentionWork& work,
                       const Projections& p) {
  const auto traffic = [](double bytes, int launches) {
    return MemoryWork{ceil_bytes(bytes), launches, MemoryAccess::streaming};
  };
  const double copy = 2 * static_cast<double>(b.element());
  const double context = copy * static_cast<double>(b.tokens() * p.heads * p.v_dim);
  const double projected =
      copy *
      static_cast<double>(b.tokens() * (p.heads * p.qk_dim + p.kv_heads * (p.qk_dim + p.v_dim)));
  op.forward.push_back(traffic(context, 1));
  op.backward.push_back(traffic(context + projected, 2));
  if (!b.workload().attention_dropout) return;
  const double scores = static_cast<double>(work.batch * work.heads) *
                        static_cast<double>(work.queries) * static_cast<double>(work.keys);
  op.forward.push_back(traffic((copy + 1) * scores, 1));
  op.backward.push_back(traffic((copy + 1) * scores, 1));
}

// With one sequence the order of the two outer dimensions says nothing, and nothing is copied.
bool orders_matter(const GraphBuilder& b, AttentionKernel kernel) {
  return kernel != AttentionKernel::eager &&
         b.plan().microbatch * b.workload().sequences_per_sample > 1;
}

bool copies_around_kernel(const GraphBuilder& b, AttentionKernel kernel) {
  return b.workload().framework.transposes_attention && orders_matter(b, kernel);
}

TensorIndex transposed(GraphBuilder& b, std::string_view name, TensorIndex t,
                       std::int64_t elements) {
  const double moved = 2 * bytes_of_elements(b, elements);
  const TensorIndex copy = b.pointwise(name, {t}, {}, elements, moved, moved, 1);
  std::get<MemoryWork>(b.last().backward.front()).launches = 1;
  issue_as_plain(b.last());
  return copy;
}

// The kernel's output as the projection reads it.
TensorIndex laid_out(GraphBuilder& b, AttentionKernel kernel, TensorIndex out,
                     std::int64_t elements) {
  if (copies_around_kernel(b, kernel)) return transposed(b, "transpose_output", out, elements);
  if (!b.workload().framework.merges_heads_of_output || !orders_matter(b, kernel)) return out;
  return transposed(b, "part_heads", transposed(b, "merge_heads", out, elements), elements);
}

void transpose_operands(GraphBuilder& b, KernelOperands& o) {
  const std::int64_t rows = b.tokens();
  o.p.q = transposed(b, "transpose_q", o.p.q, rows * o.p.heads * o.p.qk_dim);
  o.k = transposed(b, "transpose_k", o.k, rows * o.p.kv_heads * o.p.qk_dim);
  o.v = transposed(b, "transpose_v", o.v, rows * o.p.kv_heads * o.p.v_dim);
}

// The mask as the kernel adds it to the scores, zero or minus infinity: one for each sequence, made
// in every layer and kept (PyTorch aten/src/ATen/native/transformers/attention.cpp,
// convert_boolean_attn_mask).
void keep_mask(GraphBuilder& b, Operator& op, const AttentionWork& work) {
  const std::int64_t bytes = work.batch * work.queries * work.keys * b.element();
  op.outputs.push_back(b.tensor_bytes("mask", bytes, MemoryCategory::activations, 0));
  op.saves.push_back(op.outputs.back());
  op.forward.push_back(traffic(2 * as_double(bytes), 2));
}

TensorIndex attend(GraphBuilder& b, const Projections& projected, BlockKind kind) {
  if (b.workload().framework.output_holds_keys) {
    b.outlive(projected.k);
    b.outlive(projected.v);
  }
  if (kind.keys == KeySource::lent) {
    b.outlive(projected.k, true);
    b.outlive(projected.v, true);
  }
  KernelOperands o = expanded(b, projected, kind);
  const Projections& p = o.p;
  AttentionWork work = kernel_shape(b, p, kind);
  if (o.written_out) {
    work.kernel = AttentionKernel::eager;
    work.fp32_operands = true;
    work.products_alone = false;
  }
  const std::int64_t rows = b.tokens();
  const bool copies = copies_around_kernel(b, work.kernel);
  if (copies) transpose_operands(b, o);
  const TensorIndex out = b.tensor("attention", rows * p.heads * p.v_dim);
  Operator op;
  op.name = "attention";
  op.kind = OperatorKind::attention;
  op.unlisted = b.workload().framework.selective_op_omits_cudnn &&
                b.workload().framework.attention == AttentionKernel::cudnn;
  op.inputs = {p.q, o.k, o.v};
  op.outputs = {out};
  op.saves = op.inputs;
  if (p.chosen) op.inputs.push_back(*p.chosen);
  const RingOperands ring{rows * p.heads * p.qk_dim, rows * p.kv_heads * (p.qk_dim + p.v_dim),
                          rows * p.heads * p.v_dim};
  op.forward = context_exchange(b, ring, false);
  op.backward = context_exchange(b, ring, true);
  if (work.narrow_operands)
    cast_attention(b, op,
                   {rows * p.heads * p.qk_dim, rows * p.kv_heads * p.qk_dim,
                    rows * p.kv_heads * p.v_dim, rows * p.heads * p.v_dim});
  if (b.workload().framework.reads_lengths)  // differences of the cumulative ones, their maximum
    op.forward.insert(op.forward.end(), {MemoryWork{Bytes(0), 2}, ReadBack{}});
  const bool in_parts = attends_in_parts(b, work);
  const std::vector<AttentionWork> kernels = in_parts ? ring_parts(b, work) : std::vector{work};
  for (AttentionWork part : kernels) {
    op.forward.push_back(part);
    part.backward = true;
    op.backward.push_back(part);
  }
  if (o.written_out) {
    keep_wide_scores(b, op, work);
  } else if (work.kernel == AttentionKernel::eager) {
    if (writes_softmax_out(b))
      run_plain_softmax(b, op, work.batch * work.heads * work.queries * work.keys);
    else
      keep_scores(b, op, work);
    run_beside_scores(b, op, work, p);
    part_attention(b, op, p.heads);
  } else {
    if (masks_window(b, kind) || b.workload().model.indexer) keep_mask(b, op, work);
    op.saves.push_back(out);
    const TensorIndex lse =
        b.tensor_bytes("log_sum_exp", 4 * rows * p.heads, MemoryCategory::activations, 0);
    op.outputs.push_back(lse);
    op.saves.push_back(lse);
    // The backward kernel sums dQ in fp32 (flash-attention csrc/flash_attn/flash_api.cpp).
    op.backward_temporary = Bytes(rows * p.heads * p.qk_dim * 4);
  }
  if (in_parts) join_ring(b, ring, op);
  b.add(std::move(op));
  return laid_out(b, work.kernel, out, rows * p.heads * p.v_dim);
}

}  // namespace

TensorIndex add_attention(GraphBuilder& b, TensorIndex normed, BlockKind kind) {
  const Transformer& m = b.workload().model;
  const TensorIndex x = b.gather_sequence(normed, m.hidden);
  TensorIndex mixed = 0;
  std::int64_t in = 0;
  if (attends_sparsely(b)) {
    mixed = add_sparse_attention(b, x, kind);
    in = m.heads * m.mla->v_head_dim;
  } else {
    const Projections p = m.mla ? project_latent(b, x, kind) : project(b, x, normed, kind);
    mixed = attend(b, p, kind);
    if (p.gate) mixed = gated_output(b, mixed, *p.gate, b.tokens() * p.heads * p.v_dim);
    if (m.head_gate) mixed = head_gated_output(b, mixed, x, b.tokens() * p.heads * p.v_dim);
    in = p.heads * p.v_dim * b.tensor();
  }
  const TensorIndex out =
      b.linear({"o", in, m.hidden, Cut::rows, m.biases.o, b.workload().adapter.targets.o}, mixed,
               b.tokens());
  if (m.attention_extra_per_layer > 0) b.count_other(m.attention_extra_per_layer);
  return b.reduce_partial(out, m.hidden);
}

}  // namespace shardwise
