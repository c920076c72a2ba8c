#include "catalog/transformer_flaws.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <string_view>

namespace shardwise {
namespace {

using Flaws = std::vector<TransformerFlaw>;

struct SizeRule {
  std::string_view field;
  int value;
  int low;
  int high;
};

void check_range(const SizeRule& rule, Flaws& out) {
  if (rule.value >= rule.low && rule.value <= rule.high) return;
  out.push_back({std::string(rule.field), "expected from " + std::to_string(rule.low) + " to " +
                                              std::to_string(rule.high) + ", found " +
                                              std::to_string(rule.value)});
}

void check_ranges(Flaws& out, std::initializer_list<SizeRule> rules) {
  for (const SizeRule& rule : rules) check_range(rule, out);
}

void check_sizes(const Transformer& m, Flaws& out) {
  check_ranges(out, {{"layers", m.layers, 1, most_layers},
                     {"hidden", m.hidden, 1, most_width},
                     {"heads", m.heads, 1, most_heads},
                     {"kv_heads", m.kv_heads, 1, most_heads},
                     {"head_dim", m.head_dim, 1, most_width},
                     {"ffn", m.ffn, 1, most_width},
                     {"vocab", m.vocab, 1, most_vocab},
                     {"norms.per_layer", m.norms.per_layer, 0, 8},
                     {"position_rows", m.position_rows, m.position == PositionKind::learned ? 1 : 0,
                      most_positions},
                     {"max_positions", m.max_positions, 0, most_positions},
                     {"sliding_window", m.sliding_window.value_or(1), 1, most_positions},
                     {"sliding_window_every", m.sliding_window_every, 1, most_layers},
                     {"embed_dim", m.embed_dim.value_or(1), 1, most_width}});
}

void check_expert_groups(const MixtureOfExperts& moe, Flaws& out) {
  if (moe.groups < 1 || moe.experts % moe.groups != 0)
    out.push_back({"moe.groups", std::to_string(moe.groups) + " groups do not divide " +
                                     std::to_string(moe.experts) + " experts"});
  else if (moe.chosen_groups < 1 || moe.chosen_groups > moe.groups ||
           std::min(moe.top_k, moe.experts) > moe.chosen_groups * (moe.experts / moe.groups))
    out.push_back({"moe.chosen_groups", std::to_string(moe.chosen_groups) + " of " +
                                            std::to_string(moe.groups) + " groups do not hold " +
                                            std::to_string(moe.top_k) + " experts of a token"});
}

void check_experts(const Transformer& m, const MixtureOfExperts& moe, Flaws& out) {
  check_ranges(out, {{"moe.experts", moe.experts, 1, most_experts},
                     {"moe.top_k", moe.top_k, 1, most_experts},
                     {"moe.expert_ffn", moe.expert_ffn, 1, most_width},
                     {"moe.shared_expert_ffn", moe.shared_expert_ffn, 0, most_width},
                     {"moe.dense_layers", moe.dense_layers, 0, m.layers},
                     {"moe.every", moe.every, 1, most_layers},
                     {"moe.latent", moe.latent.value_or(1), 1, most_width}});
  if (moe.top_k > moe.experts)
    out.push_back({"moe.top_k", "a token visits " + std::to_string(moe.top_k) +
                                    " experts, but a layer has only " +
                                    std::to_string(moe.experts)});
  check_expert_groups(moe, out);
}

void check_latent(const LatentAttention& mla, Flaws& out) {
  check_ranges(out, {{"mla.q_lora_rank", mla.q_lora_rank.value_or(1), 1, most_width},
                     {"mla.kv_lora_rank", mla.kv_lora_rank, 1, most_width},
                     {"mla.qk_nope_head_dim", mla.qk_nope_head_dim, 1, most_width},
                     {"mla.qk_rope_head_dim", mla.qk_rope_head_dim, 1, most_width},
                     {"mla.v_head_dim", mla.v_head_dim, 1, most_width}});
}

void check_global_attention(const Transformer& m, Flaws& out) {
  const GlobalAttention& g = *m.global_attention;
  check_range({"global_attention.kv_heads", g.kv_heads, 1, most_heads}, out);
  check_range({"global_attention.head_dim", g.head_dim, 1, most_width}, out);
  if (g.kv_heads > 0 && m.heads % g.kv_heads != 0)
    out.push_back({"global_attention.kv_heads", std::to_string(g.kv_heads) +
                                                    " key-value heads do not divide " +
                                                    std::to_string(m.heads) + " heads"});
  if (!m.sliding_window)
    out.push_back({"global_attention", "every layer is global without a sliding_window"});
}

void check_indexer(const Transformer& m, Flaws& out) {
  check_range({"indexer.heads", m.indexer->heads, 1, most_heads}, out);
  check_range({"indexer.head_dim", m.indexer->head_dim, 1, most_width}, out);
  check_range({"indexer.top_k", m.indexer->top_k, 1, most_positions}, out);
  if (!m.mla) out.push_back({"indexer", "an indexer needs latent attention (\"mla\")"});
  const std::string& layers = m.indexer->layers;
  if (layers.empty()) return;
  const bool known = layers.find_first_not_of("os") == std::string::npos && layers[0] == 'o';
  if (layers.size() != static_cast<std::size_t>(m.layers) || !known)
    out.push_back({"indexer.layers", "expected a letter out of o s for each of " +
                                         std::to_string(m.layers) + " layers, the first one o"});
}

void check_windows(const Transformer& m, Flaws& out) {
  if (m.window_restarts && !m.sliding_window)
    out.push_back({"window_restarts", "what restarts is a sliding_window"});
  if (m.windows.empty()) return;
  const bool known = m.windows.find_first_not_of("wf") == std::string::npos;
  if (m.windows.size() == static_cast<std::size_t>(m.layers) && known && m.sliding_window) return;
  out.push_back({"windows", "expected a letter out of w f for each of " + std::to_string(m.layers) +
                                " layers, beside a sliding_window"});
}

// Those that share need one of their kind that makes its own.
void check_shared_keys(const Transformer& m, Flaws& out) {
  const int own = m.layers - m.shared_keys->layers;
  check_range({"shared_keys.layers", m.shared_keys->layers, 1, m.layers - 1}, out);
  if (own < 1 || own >= m.layers) return;
  for (int layer = own; layer < m.layers; ++layer) {
    int before = own - 1;
    while (before >= 0 && m.sees_window(before) != m.sees_window(layer)) --before;
    if (before >= 0) continue;
    out.push_back(
        {"shared_keys.layers",
         "layer " + std::to_string(layer) + " has no layer of its kind before it that makes keys"});
    return;
  }
}

void check_layer_embeddings(const LayerEmbeddings& own, Flaws& out) {
  check_range({"layer_embeddings.vocab", own.vocab, 1, most_vocab}, out);
  check_range({"layer_embeddings.width", own.width, 1, most_width}, out);
}

void check_altup(const Transformer& m, Flaws& out) {
  check_range({"altup.streams", m.altup->streams, 2, 64}, out);
  check_range({"altup.residual_rank", m.altup->residual_rank, 1, most_width}, out);
  check_range({"altup.cut_gates", m.altup->cut_gates, 0, m.layers}, out);
  if (!m.layer_embeddings || m.moe || !m.mixers.empty() || m.norms.per_layer != 4)
    out.push_back({"altup", "its blocks have four norms, an MLP and embeddings of their own"});
}

struct MixerNeeds {
  std::string_view letters;
  bool present;
  std::string_view what;
};

void check_mixers(const Transformer& m, Flaws& out) {
  const bool known = m.mixers.find_first_not_of("M*-E") == std::string::npos ||
                     m.mixers.find_first_not_of("ADSBLC") == std::string::npos;
  if (m.mixers.size() != static_cast<std::size_t>(m.layers) || !known) {
    out.push_back(
        {"mixers", "expected a letter out of M * - E, or out of A D S B L C, for each of " +
                       std::to_string(m.layers) + " layers"});
    return;
  }
  const std::array<MixerNeeds, 5> needs{{
      {"D", m.delta.has_value(), "Gated DeltaNet layers need the sizes of \"delta\""},
      {"MSB", m.mamba.has_value(), "Mamba layers need the sizes of \"mamba\""},
      {"L", m.lightning.has_value(), "lightning attention needs the sizes of \"lightning\""},
      {"C", m.convolution.has_value(), "convolutions need the sizes of \"convolution\""},
      {"E", m.moe.has_value(), "expert layers need the sizes of \"moe\""},
  }};
  for (const MixerNeeds& row : needs)
    if (!row.present && m.mixers.find_first_of(row.letters) != std::string::npos)
      out.push_back({"mixers", std::string(row.what)});
}

void check_state_space(const StateSpace& s, Flaws& out) {
  check_ranges(out, {{"mamba.step_rank", s.step_rank.value_or(1), 1, most_width},
                     {"mamba.heads", s.heads, 1, most_heads},
                     {"mamba.head_dim", s.head_dim, 1, most_width},
                     {"mamba.groups", s.groups, 1, most_heads},
                     {"mamba.state", s.state, 1, most_width},
                     {"mamba.convolution", s.convolution, 1, most_width},
                     {"mamba.chunk", s.chunk, 1, most_width}});
  if (s.step_rank && (s.head_dim != 1 || s.groups != 1))
    out.push_back({"mamba.step_rank", "with it heads have one value each, in one group"});
  if (s.groups > 0 && s.heads % s.groups != 0)
    out.push_back({"mamba.groups", std::to_string(s.groups) + " groups do not divide " +
                                       std::to_string(s.heads) + " heads"});
}

void check_lightning(const LightningAttention& l, Flaws& out) {
  check_ranges(out, {{"lightning.heads", l.heads, 1, most_heads},
                     {"lightning.head_dim", l.head_dim, 1, most_width},
                     {"lightning.block", l.block, 1, most_width}});
}

void check_delta(const DeltaNet& d, Flaws& out) {
  check_ranges(out, {{"delta.gate_rank", d.gate_rank.value_or(1), 1, most_width},
                     {"delta.key_heads", d.key_heads, 1, most_heads},
                     {"delta.value_heads", d.value_heads, 1, most_heads},
                     {"delta.key_dim", d.key_dim, 1, most_width},
                     {"delta.value_dim", d.value_dim, 1, most_width},
                     {"delta.convolution", d.convolution, 1, most_width},
                     {"delta.chunk", d.chunk, 1, most_width}});
  if (d.key_heads > 0 && d.value_heads % d.key_heads != 0)
    out.push_back({"delta.key_heads", std::to_string(d.key_heads) + " key heads do not divide " +
                                          std::to_string(d.value_heads) + " value heads"});
}

// An upper bound in floating point, which cannot overflow where the exact count would.
double rough_parameters(const Transformer& m) {
  const double h = m.hidden;
  const double width = static_cast<double>(m.heads) * m.head_dim;
  double layer = 4 * h * width + 3 * h * m.ffn;
  if (m.moe) {
    const double experts = m.moe->experts;
    layer += 3 * h * (experts * m.moe->expert_ffn + m.moe->shared_expert_ffn);
  }
  if (m.mla) {
    const double ranks = m.mla->q_lora_rank.value_or(0) + double{1} * m.mla->kv_lora_rank;
    const double dims =
        double{1} * m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim + m.mla->v_head_dim;
    layer += (ranks + h) * (h + m.heads * dims);
  }
  if (m.indexer) {
    const double asked = double{1} * m.indexer->heads * m.indexer->head_dim;
    layer += (m.mla ? m.mla->q_lora_rank.value_or(m.hidden) : m.hidden) * asked + h * asked;
  }
  if (m.mamba) {
    const double inner = double{1} * m.mamba->heads * m.mamba->head_dim;
    layer += (h + m.mamba->convolution + 1.0) *
             (3 * inner + 2.0 * m.mamba->groups * m.mamba->state + 4.0 * m.mamba->heads);
  }
  if (m.delta) {
    const double keys = double{1} * m.delta->key_heads * m.delta->key_dim;
    const double values = double{1} * m.delta->value_heads * m.delta->value_dim;
    layer += (h + m.delta->convolution) * (2 * keys + 3 * values + 4.0 * m.delta->value_heads);
  }
  if (m.mamba && m.mamba->step_rank)
    layer += 2.0 * m.mamba->heads * (*m.mamba->step_rank + 2.0 * m.mamba->state);
  if (m.lightning) layer += 5 * h * m.lightning->heads * m.lightning->head_dim;
  if (m.convolution) layer += (4 * h + m.convolution->taps) * h;
  if (m.attention_gate) layer += h * width;
  if (m.shared_keys && m.shared_keys->double_wide_mlp) layer += 3 * h * m.ffn;
  if (const auto& own = m.layer_embeddings) layer += (own->vocab + 4 * h) * own->width;
  if (const auto& a = m.altup)
    layer += h * (3.0 * a->streams + 2.0 * a->residual_rank) + 2.0 * a->streams * h * h / m.layers;
  if (m.value_embeddings) layer += double{1} * m.vocab * width;
  if (m.global_attention) layer += 4 * h * (double{1} * m.heads * m.global_attention->head_dim);
  return m.layers * layer + (2.0 * m.vocab + m.position_rows) * h;
}

void check_total(const Transformer& m, Flaws& out) {
  const double rough = rough_parameters(m);
  if (rough <= most_parameters) return;
  char text[96];
  std::snprintf(text, sizeof text, "the sizes multiply out to about %.0e parameters, above %.0e",
                rough, most_parameters);
  out.push_back({"layers", text});
}

}  // namespace

std::vector<TransformerFlaw> flaws(const Transformer& model) {
  Flaws out;
  check_sizes(model, out);
  if (model.vision && model.vision->hidden % model.vision->heads != 0)
    out.push_back({"vision.heads", std::to_string(model.vision->heads) +
                                       " heads do not divide the tower's width of " +
                                       std::to_string(model.vision->hidden)});
  if (model.moe) check_experts(model, *model.moe, out);
  if (model.mla) check_latent(*model.mla, out);
  if (model.indexer) check_indexer(model, out);
  if (model.mamba) check_state_space(*model.mamba, out);
  if (model.delta) check_delta(*model.delta, out);
  if (model.lightning) check_lightning(*model.lightning, out);
  if (model.convolution)
    check_range({"convolution.taps", model.convolution->taps, 1, most_width}, out);
  if (model.global_attention) check_global_attention(model, out);
  check_windows(model, out);
  if (out.empty() && model.shared_keys) check_shared_keys(model, out);
  if (model.altup) check_altup(model, out);
  if (model.layer_embeddings) check_layer_embeddings(*model.layer_embeddings, out);
  if (model.value_embeddings)
    check_range({"value_embeddings.tables", model.value_embeddings->tables, 1, model.layers}, out);
  if (!model.mixers.empty()) check_mixers(model, out);
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    out.push_back({"kv_heads", std::to_string(model.kv_heads) + " key-value heads do not divide " +
                                   std::to_string(model.heads) + " attention heads"});
  if (out.empty()) check_total(model, out);
  return out;
}

}  // namespace shardwise
