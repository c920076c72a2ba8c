#include "simulator/graphs/layer_graph.hpp"

#include <string_view>
#include <variant>

namespace shardwise {
int table_ranks(const Workload& w, const ParallelPlan& plan) {
  return w.framework.parallel.whole_tables ? 1 : plan.tensor;
}

std::int64_t padded_vocabulary(const Workload& w, const ParallelPlan& plan) {
  const std::int64_t ranks = table_ranks(w, plan);
  const std::int64_t multiple = w.framework.parallel.pads_vocabulary
                                    ? w.framework.parallel.vocabulary_multiple * ranks
                                    : ranks;
  return (w.model.vocab + multiple - 1) / multiple * multiple;
}

Workload in_16_bits(Workload w) {
  w.compute = w.activation_dtype();
  return w;
}

namespace {

TensorIndex add_mixer(GraphBuilder& b, TensorIndex x, TensorIndex normed, BlockKind kind) {
  switch (kind.mixer) {
    case LayerMixer::attention:
      return add_attention(b, normed, kind);
    case LayerMixer::experts:
      return add_experts(b, x, normed);
    case LayerMixer::mamba:
      return add_mamba(b, normed);
    default:
      return add_mlp(b, normed, b.workload().model.ffn, true);
  }
}

// As the norm before the same branch of an ordinary block, so that recomputation knows it.
std::string_view norm_name(LayerMixer mixer) {
  if (mixer == LayerMixer::mamba) return "mamba_input_norm";
  return mixer == LayerMixer::attention ? "attention_norm" : "mlp_norm";
}

TensorIndex add_mixer_block(GraphBuilder& b, TensorIndex x, BlockKind kind) {
  const std::int64_t hidden = b.workload().model.hidden;
  const std::int64_t rows = b.sequence_tokens();
  TensorIndex branch = add_mixer(b, x, b.norm(norm_name(kind.mixer), x, rows, hidden), kind);
  branch = b.dropout(branch, rows * hidden);
  return b.residual_add(x, branch, rows * hidden);
}

// Where the classes scale a branch's input, it is a tensor of its own; other kernels scale on the
// way.
TensorIndex scaled(GraphBuilder& b, TensorIndex normed, std::int64_t elements) {
  if (!b.own_code().scaled_inputs) return normed;
  const double n = bytes_of_elements(b, elements);
  const TensorIndex out = b.pointwise("scaled_input", {normed}, {}, elements, 2 * n, 2 * n, 1);
  if (b.bytes_of(normed) > elements * b.element()) b.in_stream(out);
  return out;
}

// The sum of a branch and what passes it by, each times a number where norms feed the residual; the
// branch alone where the model's code says so.
TensorIndex passed_by(GraphBuilder& b, TensorIndex x, TensorIndex branch, std::int64_t elements) {
  const bool both = b.workload().model.norms.feed_residual;
  const double n = bytes_of_elements(b, elements);
  if (both) x = b.pointwise("scaled_residual", {x}, {}, elements, 2 * n, 2 * n, 1);
  if (both || b.own_code().scales_branches || b.workload().framework.layers.scales_branches)
    branch = b.pointwise("scaled_branch", {branch}, {}, elements, 2 * n, 2 * n, 1);
  return b.residual_add(x, branch, elements);
}

// What stands in a block before its MLP.
TensorIndex add_first_half(GraphBuilder& b, TensorIndex normed, BlockKind kind) {
  const std::int64_t elements = b.sequence_tokens() * b.workload().model.hidden;
  switch (kind.mixer) {
    case LayerMixer::delta_and_mlp:
      return add_delta(b, normed);
    case LayerMixer::mamba_and_mlp:
      return add_mamba(b, normed);
    case LayerMixer::lightning_and_mlp:
      return add_lightning(b, normed);
    case LayerMixer::convolution_and_mlp:
      return add_convolution(b, normed);
    case LayerMixer::attention_with_mamba_and_mlp: {
      const TensorIndex state = add_mamba(b, scaled(b, normed, elements));
      return b.residual_add(add_attention(b, scaled(b, normed, elements), kind), state, elements);
    }
    default:
      return add_attention(b, normed, kind);
  }
}

}  // namespace

TensorIndex add_block(GraphBuilder& b, TensorIndex x, BlockKind kind) {
  if (!is_block(kind.mixer)) return add_mixer_block(b, x, kind);
  const Transformer& m = b.workload().model;
  if (m.altup) return add_altup_block(b, x, kind);
  const std::int64_t rows = b.sequence_tokens();
  const std::int64_t elements = rows * m.hidden;
  const bool parallel = m.norms.per_layer == 1;
  const bool norms_outputs = m.norms.per_layer >= 4;

  const TensorIndex normed = b.norm("attention_norm", x, rows, m.hidden);
  TensorIndex branch = add_first_half(b, normed, kind);
  if (kind.mixer == LayerMixer::attention_and_mlp)
    branch = b.with_bias(branch, elements, m.biases.o);
  if (norms_outputs) branch = b.norm("attention_output_norm", branch, rows, m.hidden);
  branch = b.dropout(branch, elements);
  const bool feeds = m.norms.feed_residual;
  const TensorIndex middle = passed_by(b, feeds ? normed : x, branch, elements);

  const TensorIndex again = parallel ? normed : b.norm("mlp_norm", middle, rows, m.hidden);
  const std::int64_t width = kind.double_wide_mlp ? 2 * std::int64_t{m.ffn} : m.ffn;
  branch = kind.experts ? add_experts(b, middle, again) : add_mlp(b, again, width, true);
  branch = b.with_bias(branch, elements, !kind.experts && m.biases.mlp);
  if (norms_outputs) branch = b.norm("mlp_output_norm", branch, rows, m.hidden);
  branch = b.dropout(branch, elements);
  const TensorIndex out = passed_by(b, feeds ? again : middle, branch, elements);
  return m.layer_embeddings ? add_layer_input(b, out) : out;
}

LayerGraph block_graph(const Workload& asked, const ParallelPlan& plan, BlockKind kind) {
  if (kind.in_16_bits) {
    kind.in_16_bits = false;
    return block_graph(in_16_bits(asked), plan, kind);
  }
  const Workload& w = asked;
  GraphBuilder b(w, plan, w.trains_base() && kind.trainable);
  const TensorIndex x = b.input(b.sequence_tokens() * w.model.stream_width());
  return b.finish(add_block(b, x, kind));
}

LayerGraph embedding_graph(const Workload& w, const ParallelPlan& plan) {
  const bool trained = w.trains_embedding() || w.trains_head();
  GraphBuilder b(w, plan, trained);
  const Transformer& m = w.model;
  const std::int64_t width = m.embed_dim.value_or(m.hidden);
  const std::int64_t table = padded_vocabulary(w, plan) / table_ranks(w, plan) * width;
  const std::int64_t elements = b.sequence_tokens() * m.hidden;
  b.count_table(table);
  const TensorIndex ids = b.input(0);
  const double n = bytes_of_elements(b, elements);
  TensorIndex x = b.in_stream(b.pointwise("embedding", {ids}, {}, elements, 2 * n, 3 * n, 1));
  b.last().kind = OperatorKind::lookup;
  std::get<MemoryWork>(b.last().forward.front()).access = MemoryAccess::gather;
  std::get<MemoryWork>(b.last().backward.front()).access = MemoryAccess::gather;
  b.last().weight_gradient_elements = trained ? table : 0;
  // The gradient of a table is as large as the table, and zero at first (PyTorch
  // aten/src/ATen/native/cuda/Embedding.cu, embedding_dense_backward_cuda).
  const auto zeroed = [&](std::int64_t tensor) -> std::vector<Kernel> {
    return {traffic(as_double(tensor * b.gradient_element()), 1)};
  };
  if (trained) b.last().backward_weight = zeroed(table);
  if (table_ranks(w, plan) > 1) {
    const Bytes whole(b.tokens() * m.hidden * b.element());
    b.last().forward.push_back(
        CommWork{plan.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce,
                 whole, CommAxis::tensor, false});
    if (plan.sequence_parallel)
      b.last().backward.push_back(CommWork{Collective::all_gather, whole, CommAxis::tensor, false});
  }
  if (m.embed_dim) x = b.linear({"project_in", width, m.hidden}, x, b.sequence_tokens());
  if (m.position == PositionKind::learned) {
    const std::int64_t positions = std::int64_t{m.position_rows} * m.hidden;
    b.count_other(positions);
    x = b.in_stream(b.pointwise("positions", {x}, {}, elements, 3 * n, 0, 1));
    b.last().passes_gradient = true;
    b.last().weight_gradient_elements = trained ? positions : 0;
    if (trained) b.last().backward_weight = zeroed(positions);
  }
  if (m.layer_embeddings) add_layer_embeddings(b, ids, x, trained);
  if (m.altup) return b.finish(open_streams(b, x));
  if (m.value_embeddings) add_value_embeddings(b, ids, trained);
  if (m.norms.embedding) x = b.norm("embedding_norm", x, b.sequence_tokens(), m.hidden);
  return b.finish(w.hidden_dropout ? b.in_stream(b.dropout(x, elements)) : x);
}

}  // namespace shardwise
