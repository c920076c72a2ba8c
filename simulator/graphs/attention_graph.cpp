// Attention: projections, rotary positions, the attention kernel, the output projection.
//
// Saved per token without recomputation (flash kernel, 16 bits): normed input 2h, q 2ad, k and v
// 2kd each, output 2ad, log-sum-exp 4a. The eager kernel keeps the scores' softmax, and with
// attention dropout its mask and result: 5 a s bytes per token as in Megatron (arXiv 2205.05198,
// section 4.1).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/graphs/attention_gate.hpp"
#include "simulator/graphs/attention_projections.hpp"
#include "simulator/graphs/eager_scores.hpp"
#include "simulator/graphs/heads_apart.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/narrow_attention.hpp"
#include "simulator/graphs/plain_softmax.hpp"
#include "simulator/graphs/ring_attention.hpp"
#include "simulator/graphs/sparse_attention.hpp"
#include "simulator/graphs/unfused_softmax.hpp"
#include "simulator/graphs/written_out_attention.hpp"

namespace shardwise {
namespace {

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

struct KernelOperands {
  AttentionProjections p;
  TensorIndex k = 0, v = 0;  // as the kernel reads them: expanded to all heads where asked
  bool written_out = false;  // no kernel, but PyTorch's own operators
};

// Whether a window reaches the kernel as a mask (FrameworkAttention::masks_windows).
bool masks_window(const GraphBuilder& b, BlockKind kind) {
  const Workload& w = b.workload();
  return w.framework.attention.masks_windows &&
         w.framework.attention.kernel == AttentionKernel::flash && kind.local_attention &&
         w.sequence >= w.model.sliding_window.value_or(w.sequence);
}

// The widest head that PyTorch's flash kernel takes (aten/src/ATen/native/transformers/cuda/
// sdp_utils.cpp, check_head_dim_size_flash).
constexpr std::int64_t widest_flash_head = 256;

bool too_wide_for_flash(const GraphBuilder& b, const AttentionProjections& p) {
  return b.workload().framework.attention.kernel == AttentionKernel::flash &&
         p.qk_dim > widest_flash_head;
}

// Keys and values are copied out for every query head where the kernel does not group them (with a
// mask, or beyond the flash kernel's width); of one key head that is a view.
KernelOperands expanded(GraphBuilder& b, const AttentionProjections& p, BlockKind kind) {
  KernelOperands o{p, p.k, p.v};
  const Framework& f = b.workload().framework;
  const bool ungrouped = masks_window(b, kind) || too_wide_for_flash(b, p);
  if ((f.attention.by_operators || !ungrouped) && writes_attention_out(b, p.heads, p.kv_heads)) {
    o.p.q = widened(b, "widen_q", p.q, b.tokens() * p.heads * p.qk_dim);
    o.k = widened(b, "widen_k", p.k, b.tokens() * p.heads * p.qk_dim);
    o.v = widened(b, "widen_v", p.v, b.tokens() * p.heads * p.v_dim);
    o.p.kv_heads = p.heads;
    o.written_out = true;
    return o;
  }
  const bool eager = f.attention.kernel == AttentionKernel::eager;
  if (p.kv_heads >= p.heads || !(eager || ungrouped || f.attention.repeats_kv)) return o;
  const auto all_heads = p.kv_heads == 1 && !eager ? spread : repeated_heads;
  o.k = all_heads(b, "repeat_k", p.k, b.tokens() * p.heads * p.qk_dim);
  o.v = all_heads(b, "repeat_v", p.v, b.tokens() * p.heads * p.v_dim);
  o.p.kv_heads = p.heads;
  return o;
}

bool writes_softmax_out(const GraphBuilder& b) {
  return b.eager() && b.workload().framework.attention.plain_softmax;
}

// Products with queries and keys, and with values, are equally many going forward. FlashAttention
// takes heads of one width only, so that values are padded (Megatron-LM and transformers do).
std::int64_t mean_head_dim(const AttentionProjections& p, AttentionKernel kernel) {
  const bool apart = kernel == AttentionKernel::cudnn || kernel == AttentionKernel::eager;
  return apart ? (p.qk_dim + p.v_dim) / 2 : std::max(p.qk_dim, p.v_dim);
}

AttentionWork kernel_shape(const GraphBuilder& b, const AttentionProjections& p, BlockKind kind) {
  const Workload& w = b.workload();
  AttentionWork work;
  work.batch = std::int64_t{b.plan().microbatch} * w.sequences_per_sample;
  work.heads = static_cast<int>(p.heads);
  work.kv_heads = static_cast<int>(p.kv_heads);
  work.head_dim = static_cast<int>(mean_head_dim(p, w.framework.attention.kernel));
  // Context parallelism balances causal work over the ranks, so each computes an equal share of the
  // pairs: all keys, or all of a window, for 1/context of the queries.
  work.queries = w.sequence / b.plan().context;
  work.context = b.plan().context;
  work.keys = w.sequence;
  if (kind.local_attention && w.model.sliding_window)
    work.keys = std::min<std::int64_t>(work.keys, *w.model.sliding_window);
  work.restarts = kind.local_attention && w.model.window_restarts;
  work.causal = w.causal;
  work.deterministic = w.framework.layers.deterministic;
  work.kernel = w.framework.attention.kernel;
  // A mask of its own keeps scaled_dot_product_attention from the flash kernel, and the kernel that
  // takes it computes what it masks, windows too (PyTorch 2.5.1 aten/src/ATen/native/transformers/
  // cuda/sdp_utils.cpp, check_for_attn_mask).
  const bool given = w.framework.attention.masks_padding || w.model.indexer;
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
                       const AttentionProjections& p) {
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
  return b.workload().framework.attention.transposes && orders_matter(b, kernel);
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
  if (!b.workload().framework.attention.merges_heads_of_output || !orders_matter(b, kernel))
    return out;
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

TensorIndex attend(GraphBuilder& b, const AttentionProjections& projected, BlockKind kind) {
  if (b.workload().framework.loss.output_holds_keys) {
    b.outlive(projected.k);
    b.outlive(projected.v);
  }
  if (kind.keys == KeySource::lent) {
    b.outlive(projected.k, true);
    b.outlive(projected.v, true);
  }
  KernelOperands o = expanded(b, projected, kind);
  const AttentionProjections& p = o.p;
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
  op.unlisted = b.workload().framework.recompute.selective_op_omits_cudnn &&
                b.workload().framework.attention.kernel == AttentionKernel::cudnn;
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
  if (b.workload()
          .framework.attention.reads_lengths)  // differences of the cumulative ones, their maximum
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
    const AttentionProjections p = project_attention(b, x, normed, kind);
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
