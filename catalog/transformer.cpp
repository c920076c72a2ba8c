#include "catalog/transformer.hpp"

#include <algorithm>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

using Count = std::int64_t;

Count norm_values(const Norms& norms, Count width) {
  if (norms.kind == NormKind::layer_no_weight) return 0;
  return norms.bias ? 2 * width : width;
}

// The heads of one layer.
struct HeadSizes {
  Count kv_heads, head_dim;
  bool values_are_keys = false;
};

Count qk_norm_values(const Transformer& m, const HeadSizes& heads) {
  const Count d = heads.head_dim;
  switch (m.qk_norm) {
    case QkNorm::none:
      return 0;
    case QkNorm::head_dim:
      return 2 * d;     // one weight vector for all heads
    case QkNorm::full:  // over the whole projection, and
    case QkNorm::per_head:
      return (Count{m.heads} + heads.kv_heads) * d;  // one per head: as many
  }
  return 0;
}

Count latent_attention_values(const Transformer& m, const LatentAttention& a) {
  const Count h = m.hidden;
  const Count heads = m.heads;
  const Count query_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  const Count c = a.kv_lora_rank;
  Count query = h * heads * query_dim;
  if (a.q_lora_rank) {
    const Count q = *a.q_lora_rank;
    query = h * q + q + q * heads * query_dim;
  }
  const Count down = h * (c + a.qk_rope_head_dim) + c;
  const Count up = c * heads * (Count{a.qk_nope_head_dim} + a.v_head_dim);
  const Count out = heads * a.v_head_dim * h;
  return query + down + up + out;
}

// Queries from their latent, one key of all heads with its norm, and a weight for each head.
Count indexer_values(const Transformer& m, const TokenIndexer& own) {
  const Count h = m.hidden, latent = m.mla ? m.mla->q_lora_rank.value_or(m.hidden) : m.hidden;
  return latent * own.heads * own.head_dim + h * own.head_dim + 2 * own.head_dim + h * own.heads;
}

// Of keys and values of one token.
Count kv_values(const HeadSizes& heads) {
  return heads.kv_heads * heads.head_dim * (heads.values_are_keys ? 1 : 2);
}

// What a layer that shares another one's keys and values does not have.
Count own_key_values(const Transformer& m, const HeadSizes& heads) {
  const Count norm = m.qk_norm == QkNorm::none       ? 0
                     : m.qk_norm == QkNorm::head_dim ? heads.head_dim
                                                     : heads.kv_heads * heads.head_dim;
  return (m.hidden + (m.biases.qkv ? 1 : 0)) * kv_values(heads) + norm;
}

Count attention_values(const Transformer& m, const HeadSizes& heads) {
  const Count h = m.hidden;
  Count values = m.attention_extra_per_layer;
  if (m.biases.o) values += h;
  if (m.head_gate) values += h * m.heads;
  if (m.mla) return values + latent_attention_values(m, *m.mla);
  const Count q = Count{m.heads} * heads.head_dim;
  values += h * q + h * kv_values(heads) + q * h;
  if (m.attention_gate) values += h * q;
  if (m.biases.qkv) values += q + kv_values(heads);
  return values + qk_norm_values(m, heads);
}

// Projections, convolution, A for each value of a state, D and the time steps' bias, and the norms.
Count selective_values(Count h, Count inner, Count rank, const StateSpace& s) {
  const Count read = rank + 2 * Count{s.state};  // time steps, B and C
  return 3 * h * inner + inner * (read + rank) + (Count{s.convolution} + 1) * inner +
         inner * s.state + 2 * inner + (s.normed ? read : 0);
}

// Projections, convolution, A, D and the time steps' bias, and the gated norm.
Count mamba_values(const Transformer& m, const StateSpace& s) {
  const Count h = m.hidden;
  if (s.step_rank) return selective_values(h, s.inner(), *s.step_rank, s);
  return h * s.projected() + Count{s.inner()} * h + (Count{s.convolution} + 1) * s.convolved() +
         Count{3} * s.heads + (s.normed ? s.inner() : 0);
}

// Projections, convolution, decay rates and their bias, and the gated norm of one head.
Count delta_values(const Transformer& m, const DeltaNet& d) {
  const Count h = m.hidden;
  if (d.gate_rank) {
    const Count r = *d.gate_rank;
    return h * (d.convolved() + d.value_heads + 2 * r) + r * (Count{d.keys()} + d.values()) +
           Count{d.values()} * h + Count{d.convolution} * d.convolved() + d.value_heads + d.keys() +
           d.value_dim;
  }
  return h * d.projected() + Count{d.values()} * h + Count{d.convolution} * d.convolved() +
         Count{2} * d.value_heads + d.value_dim;
}

// Queries, keys, values, gate and the way back, and the norm.
Count lightning_values(const Transformer& m, const LightningAttention& l) {
  return 5 * Count{m.hidden} * l.width() + l.width();
}

// Projections to two gates and a value and back, and the taps of every channel.
Count convolution_values(const Transformer& m, const GatedConvolution& c) {
  const Count h = m.hidden;
  return 4 * h * h + c.taps * h;
}

Count mlp_values(const Transformer& m) {
  const Count h = m.hidden;
  const Count f = m.ffn;
  const Count inward = m.gated_mlp ? 2 : 1;
  Count values = (inward + 1) * h * f;
  if (m.biases.mlp) values += inward * f + h;
  return values;
}

// Routed experts of one MoE layer.
Count expert_values(const Transformer& m, Count experts) {
  const Count h = m.moe->latent.value_or(m.hidden);
  const Count f = m.moe->expert_ffn;
  const Count inward = m.gated_mlp ? 2 : 1;
  Count each = (inward + 1) * h * f;
  if (m.biases.experts) each += inward * f + h;
  return experts * each;
}

// Router, shared experts and their gate of one MoE layer.
Count router_and_shared_values(const Transformer& m) {
  const MixtureOfExperts& moe = *m.moe;
  const Count h = m.hidden;
  const Count linears = m.gated_mlp ? 3 : 2;
  Count values = h * moe.experts + linears * h * moe.shared_expert_ffn;
  if (m.biases.router) values += moe.experts;
  if (moe.shared_gate) values += h;
  if (moe.latent) values += 2 * h * *moe.latent;
  if (moe.scaled_router) values += h + moe.experts;
  return values;
}

Count embedding_values(const Transformer& m) {
  const Count h = m.hidden;
  const Count v = m.vocab;
  if (!m.embed_dim) return v * h;
  const Count e = *m.embed_dim;
  return v * e + 2 * e * h;  // one projection in, one out before the (tied) head
}

Count head_values(const Transformer& m) {
  const Count v = m.vocab;
  Count values = m.biases.lm_head ? v : 0;
  if (!m.tied_embeddings) values += v * (m.embed_dim ? *m.embed_dim : m.hidden);
  return values;
}

Count end_norm_values(const Transformer& m) {
  const Count one = norm_values(m.norms, m.hidden);
  return (m.norms.final ? one : 0) + (m.norms.embedding ? one : 0);
}

}  // namespace

bool Transformer::is_moe_layer(int layer) const {
  require(layer >= 0 && layer < layers, "the layer asked for is one of the model's");
  if (single_mixers()) return mixer(layer) == LayerMixer::experts;
  if (!moe) return false;
  return layer >= moe->dense_layers && (layer + 1) % moe->every == 0;
}

bool Transformer::sees_window(int layer) const {
  if (!sliding_window) return false;
  if (!windows.empty()) return windows[static_cast<std::size_t>(layer)] == 'w';
  const int every = sliding_window_every;
  return every <= 1 || layer % every != every - 1;
}

// Layers i with i >= dense_layers and (i + 1) a multiple of `every`.
bool Transformer::shares_keys(int layer) const {
  return shared_keys && layer >= layers - shared_keys->layers;
}

bool Transformer::lends_keys(int layer) const {
  if (!shared_keys || shares_keys(layer)) return false;
  for (int later = layer + 1; !shares_keys(later); ++later)
    if (sees_window(later) == sees_window(layer)) return false;
  return true;
}

bool Transformer::indexes_tokens(int layer) const {
  return indexer &&
         (indexer->layers.empty() || indexer->layers[static_cast<std::size_t>(layer)] == 'o');
}

int Transformer::mlp_width(int layer) const {
  return shares_keys(layer) && shared_keys->double_wide_mlp ? 2 * ffn : ffn;
}

std::int64_t Transformer::stream_width() const {
  return std::int64_t{hidden} * (altup ? altup->streams : 1);
}

int Transformer::moe_layers() const {
  if (single_mixers()) return static_cast<int>(std::count(mixers.begin(), mixers.end(), 'E'));
  if (!moe || moe->dense_layers >= layers) return 0;
  return layers / moe->every - moe->dense_layers / moe->every;
}

bool Transformer::single_mixers() const {
  return !mixers.empty() && !is_block(mixer_named(mixers[0]));
}

LayerMixer Transformer::mixer(int layer) const {
  require(layer >= 0 && layer < layers, "the layer asked for is one of the model's");
  return mixers.empty() ? LayerMixer::attention_and_mlp
                        : mixer_named(mixers[static_cast<std::size_t>(layer)]);
}

LayerMixer mixer_named(char letter) {
  switch (letter) {
    case 'A':
      return LayerMixer::attention_and_mlp;
    case 'D':
      return LayerMixer::delta_and_mlp;
    case 'S':
      return LayerMixer::mamba_and_mlp;
    case 'B':
      return LayerMixer::attention_with_mamba_and_mlp;
    case 'L':
      return LayerMixer::lightning_and_mlp;
    case 'C':
      return LayerMixer::convolution_and_mlp;
    case 'M':
      return LayerMixer::mamba;
    case '*':
      return LayerMixer::attention;
    case 'E':
      return LayerMixer::experts;
    default:
      return LayerMixer::mlp;
  }
}

bool is_block(LayerMixer mixer) { return mixer <= LayerMixer::convolution_and_mlp; }

namespace {

// One layer's mixer, without the MLP or experts of a block.
Count mixer_values(LayerMixer mixer, const ParameterCount& c) {
  switch (mixer) {
    case LayerMixer::attention_and_mlp:
    case LayerMixer::attention:
      return c.attention_per_layer;
    case LayerMixer::delta_and_mlp:
      return c.delta_per_layer;
    case LayerMixer::mamba_and_mlp:
    case LayerMixer::mamba:
      return c.mamba_per_layer;
    case LayerMixer::attention_with_mamba_and_mlp:
      return c.attention_per_layer + c.mamba_per_layer;
    case LayerMixer::lightning_and_mlp:
      return c.lightning_per_layer;
    case LayerMixer::convolution_and_mlp:
      return c.convolution_per_layer;
    default:
      return 0;
  }
}

// What the layers of a hybrid model sum to.
Count hybrid_values(const Transformer& m, const ParameterCount& c) {
  Count sum = 0;
  for (int i = 0; i < m.layers; ++i) {
    const LayerMixer mixer = m.mixer(i);
    sum += mixer_values(mixer, c) + c.norms_per_layer;
    if (m.is_moe_layer(i))
      sum += c.experts_per_layer + c.moe_rest_per_layer;
    else if (is_block(mixer) || mixer == LayerMixer::mlp)
      sum += c.dense_mlp_per_layer;
  }
  return sum;
}

}  // namespace

ParameterCount parameter_count(const Transformer& model) {
  ParameterCount c;
  c.embedding = embedding_values(model);
  c.positions =
      model.position == PositionKind::learned ? Count{model.position_rows} * model.hidden : 0;
  const HeadSizes usual{model.kv_heads, model.head_dim};
  HeadSizes global = usual;
  if (const auto& g = model.global_attention)
    global = {g->kv_heads, g->head_dim, g->values_are_keys};
  c.attention_per_layer = attention_values(model, usual);
  c.global_attention_per_layer = attention_values(model, global);
  c.dense_mlp_per_layer = mlp_values(model);
  c.norms_per_layer = model.norms.per_layer * norm_values(model.norms, model.hidden);
  c.final_norm = end_norm_values(model);
  c.lm_head = head_values(model);

  const Count moe = model.moe_layers();
  Count idle = 0;  // experts of one layer that a token does not visit
  if (model.moe) {
    c.experts_per_layer = expert_values(model, model.moe->experts);
    c.moe_rest_per_layer = router_and_shared_values(model);
    idle = expert_values(model, Count{model.moe->experts} - model.moe->top_k);
  }
  if (model.mamba) c.mamba_per_layer = mamba_values(model, *model.mamba);
  if (model.delta) c.delta_per_layer = delta_values(model, *model.delta);
  if (model.lightning) c.lightning_per_layer = lightning_values(model, *model.lightning);
  if (model.convolution) c.convolution_per_layer = convolution_values(model, *model.convolution);
  Count blocks = model.mixers.empty() ? (model.layers - moe) * c.dense_layer() + moe * c.moe_layer()
                                      : hybrid_values(model, c);
  if (model.indexer) c.indexer_per_layer = indexer_values(model, *model.indexer);
  for (int i = 0; i < model.layers; ++i) {
    if (model.indexes_tokens(i)) blocks += c.indexer_per_layer;
    if (!model.sees_window(i)) blocks += c.global_attention_per_layer - c.attention_per_layer;
    if (model.shares_keys(i))
      blocks -= own_key_values(model, model.sees_window(i) ? usual : global);
    if (model.mlp_width(i) != model.ffn) blocks += c.dense_mlp_per_layer;
  }
  if (const auto& own = model.layer_embeddings) {
    const Count h = model.hidden, all = Count{own->width} * model.layers;
    c.layer_embeddings = (own->vocab + h) * all + own->width;
    c.layer_input_per_layer = 2 * h * own->width + h;
    blocks += model.layers * c.layer_input_per_layer;
  }
  if (const auto& a = model.altup) {
    const Count h = model.hidden, s = a->streams;
    c.streams = 2 * (s - 1) * h * h;
    c.streams_per_layer = s * s * s + s * s + s * h + 2 * h + 2 * h * a->residual_rank + h;
    blocks += c.streams + model.layers * c.streams_per_layer;
  }
  if (model.value_embeddings)
    c.value_embeddings =
        Count{model.vocab} * model.value_embeddings->tables * model.kv_heads * model.head_dim;
  if (model.vision) c.vision = model.vision->parameters();
  c.total = c.embedding + c.positions + c.layer_embeddings + c.value_embeddings + blocks +
            c.final_norm + c.lm_head + c.vision;
  c.active = c.total - moe * idle;
  return c;
}

}  // namespace shardwise
