// A Mamba-2 mixer (arXiv 2405.21060): one projection to z, x, B, C and the time steps, a short
// convolution, the chunked scan, the gated norm, one projection back.
//
// The kernels are those of mamba_ssm's mamba_split_conv1d_scan_combined, which Megatron-LM
// (megatron/core/ssm/mamba_mixer.py, _ssm_training) and transformers call: it keeps the
// projection's output and the scan's result before the gate, and computes all else again. The
// classes of transformers hand it the norm and the projection back as well (5.23,
// models/granitemoehybrid/modeling_granitemoehybrid.py), whose input it makes again too
// (mamba_ssm 2.3.2 ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn).
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/graphs/layer_graph.hpp"

namespace shardwise {

void exchange_tokens_for_heads(const GraphBuilder& b, std::int64_t elements,
                               std::vector<Kernel>& to) {
  if (b.plan().context == 1) return;
  to.push_back(
      CommWork{Collective::all_to_all, Bytes(elements * b.element()), CommAxis::context, false});
}

namespace {

// What one rank's share of the mixer handles.
struct ScanShape {
  std::int64_t rows, chunks, length;  // tokens, chunks of them, tokens per chunk
  std::int64_t heads, head_dim, groups, state;
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t shared() const { return groups * state; }  // width of B, and of C
  std::int64_t convolved() const { return inner() + 2 * shared(); }
  std::int64_t states() const { return chunks * heads * head_dim * state; }  // values, fp32
  std::int64_t scores() const { return chunks * groups * length * length; }  // C B^T, fp32
};

ScanShape scan_shape(const GraphBuilder& b) {
  const StateSpace& s = *b.workload().model.mamba;
  const std::int64_t length = std::min<std::int64_t>(s.chunk, b.tokens());
  return {b.tokens(), (b.tokens() + length - 1) / length, length, std::max(1, s.heads / b.tensor()),
          s.head_dim, std::max(1, s.groups / b.tensor()), s.state};
}

// The products of section 6 of the paper: C B^T, its masked product with x, the states that every
// chunk adds, and what the states before it contribute.
void add_scan_products(const GraphBuilder& b, const ScanShape& s, int times,
                       std::vector<Kernel>& to) {
  const DType dtype = b.workload().activation_dtype();
  for (int i = 0; i < times; ++i) {
    to.push_back(GemmWork{s.length, s.length, s.state, s.chunks * s.groups, dtype});
    to.push_back(GemmWork{s.length, s.head_dim, s.length, s.chunks * s.heads, dtype});
    to.push_back(GemmWork{s.head_dim, s.state, s.length, s.chunks * s.heads, dtype});
    to.push_back(GemmWork{s.length, s.head_dim, s.state, s.chunks * s.heads, dtype});
  }
}

// Bytes beside the products' own operands: the convolution, the states as they are made, passed
// from chunk to chunk and read, C B^T written and read, gate and output.
double scan_forward_bytes(const GraphBuilder& b, const ScanShape& s) {
  const auto e = static_cast<double>(b.element());
  const auto values = static_cast<double>(s.rows * (2 * s.convolved() + 3 * s.inner()));
  return e * values + 4.0 * static_cast<double>(3 * s.states() + 2 * s.scores());
}

// Convolution and states once more, then the same chain backwards: gradients of the states are
// made, passed and read three times, those of C B^T written and read twice.
double scan_backward_bytes(const GraphBuilder& b, const ScanShape& s) {
  const auto e = static_cast<double>(b.element());
  const auto values = static_cast<double>(s.rows * (5 * s.convolved() + 9 * s.inner()));
  return e * values + 4.0 * static_cast<double>(8 * s.states() + 5 * s.scores());
}

// Whether the norm and the projection back are part of the scan's own function.
bool scan_projects(const GraphBuilder& b) {
  return b.eager() && b.workload().framework.layers.runs_transformers;
}

// The gated norm, in the scan's function: a statistic for each group is kept. Backward writes its
// result once more, for the projection's weight gradient.
void add_fused_norm(GraphBuilder& b, const ScanShape& s, Operator& op) {
  const std::int64_t values = s.rows * s.inner();
  const auto traffic = [&](int passes) {
    return MemoryWork{Bytes(passes * values * b.element()), 1, MemoryAccess::reduction};
  };
  op.backward_temporary += Bytes(values * b.element());
  if (!b.workload().model.mamba->normed) return;
  const TensorIndex statistics =
      b.tensor_bytes("norm_statistics", 4 * s.rows * s.groups, MemoryCategory::activations, 0);
  op.outputs.push_back(statistics);
  op.saves.push_back(statistics);
  op.forward.push_back(traffic(3));
  op.backward.insert(op.backward.begin(), traffic(6));
  b.count_other(s.inner());
  if (b.trains_base()) op.weight_gradient_elements += s.inner();
}

// The kernels want sequences one after the other: tensors that hold one token of each after the
// other are copied there and back, several sequences apart from one (Megatron-LM
// megatron/core/ssm/mamba_mixer.py, _ssm_training: rearrange and contiguous).
void copy_to_batch_first(const GraphBuilder& b, std::int64_t elements, std::vector<Kernel>& to) {
  if (!b.workload().framework.layers.sequence_first || b.plan().microbatch == 1) return;
  MemoryWork copy = one_by_one(2 * as_double(elements * b.element()), 1, as_double(elements));
  copy.plain = true;
  to.push_back(copy);
}

TensorIndex scan(GraphBuilder& b, TensorIndex projected, const ScanShape& s) {
  const std::int64_t n = s.rows * s.inner();
  const std::int64_t each =
      b.bytes_of(projected) / (s.rows * (s.inner() + s.convolved() + s.heads));
  const TensorIndex kept =
      b.tensor_bytes("scan_before_gate", each * n, MemoryCategory::temporaries, each * n);
  const TensorIndex out = b.tensor_bytes("scan", each * n, MemoryCategory::temporaries, each * n);
  Operator op;
  op.name = "scan";
  op.inputs = {projected};
  op.outputs = {kept, out};
  op.saves = {projected, kept};
  const std::int64_t wide = s.rows * (s.inner() + s.convolved() + s.heads);
  exchange_tokens_for_heads(b, wide, op.forward);
  copy_to_batch_first(b, wide, op.forward);
  add_scan_products(b, s, 1, op.forward);
  op.forward.push_back(
      MemoryWork{ceil_bytes(scan_forward_bytes(b, s)), 6, MemoryAccess::streaming});
  copy_to_batch_first(b, n, op.forward);
  exchange_tokens_for_heads(b, n, op.forward);
  exchange_tokens_for_heads(b, n, op.backward);
  copy_to_batch_first(b, n, op.backward);
  add_scan_products(b, s, 2, op.backward);
  op.backward.push_back(
      MemoryWork{ceil_bytes(scan_backward_bytes(b, s)), 14, MemoryAccess::streaming});
  copy_to_batch_first(b, wide, op.backward);
  exchange_tokens_for_heads(b, wide, op.backward);
  const std::int64_t convolved = s.rows * s.convolved() * b.element();
  op.forward_temporary = Bytes(convolved + 4 * (s.states() + s.scores()));
  op.backward_temporary = Bytes(2 * convolved + 4 * (2 * s.states() + s.scores()));
  const std::int64_t weights =
      (b.workload().model.mamba->convolution + 1) * s.convolved() + 3 * s.heads;
  b.count_other(weights);
  op.weight_gradient_elements = b.trains_base() ? weights : 0;
  if (scan_projects(b)) add_fused_norm(b, s, op);
  b.add(std::move(op));
  return out;
}

// The multiplier of the projection's columns is a buffer, of fp32 where the weights are: what it
// gives under autocast is fp32, and so is all of the scan (models/falcon_h1/modeling_falcon_h1.py,
// mup_vector).
TensorIndex scaled_columns(GraphBuilder& b, TensorIndex projected, const ScanShape& s) {
  if (!b.own_code().scaled_inputs) return projected;
  const std::int64_t wide = casts_weights(b.workload(), b.plan()) ? 4 : b.element();
  const std::int64_t n = s.rows * (s.inner() + s.convolved() + s.heads);
  const double moved = static_cast<double>(n * (b.element() + wide));
  const TensorIndex out = b.pointwise("scaled_columns", {projected}, {}, n, moved, moved, 1);
  b.widen(out, n * wide);
  b.resize_gradient(out, n * wide);
  return out;
}

}  // namespace

TensorIndex add_mamba(GraphBuilder& b, TensorIndex normed) {
  const Transformer& m = b.workload().model;
  const StateSpace& mamba = *m.mamba;
  if (mamba.step_rank) return add_selective_scan(b, normed);
  const AdapterTargets& on = b.workload().adapter.targets;
  const TensorIndex x = b.gather_sequence(normed, m.hidden);
  const ScanShape s = scan_shape(b);
  const TensorIndex projected =
      b.linear({"mamba_in", m.hidden, mamba.projected(), Cut::columns, false, on.up}, x, s.rows);
  const TensorIndex mixed = scan(b, scaled_columns(b, projected, s), s);
  const TensorIndex gated =
      scan_projects(b) || !mamba.normed ? mixed : b.norm("mamba_norm", mixed, s.rows, s.inner());
  const TensorIndex out =
      b.linear({"mamba_out", mamba.inner(), m.hidden, Cut::rows, false, on.down}, gated, s.rows);
  if (scan_projects(b) && b.trains_base()) b.last().saves.clear();  // made again in backward
  return b.reduce_partial(out, m.hidden);
}

}  // namespace shardwise
