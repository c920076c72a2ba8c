// What the columns of a row cannot say: one function per oddity, with the file it was read in.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/huggingface_family.hpp"
#include "catalog/transformer_flaws.hpp"

namespace shardwise::config_details {

// The config gives gate and up together (modeling_qwen.py: ff_dim_in = intermediate_size // 2).
void qwen(JsonReader& config, Transformer& model) {
  if (model.ffn % 2 != 0) config.problem("intermediate_size", "an even number");
  model.ffn /= 2;
}

// modeling_falcon.py: multi-query unless the new architecture says otherwise, and one norm per
// layer where attention and MLP run in parallel.
void falcon(JsonReader& config, Transformer& model) {
  const bool grouped = config.maybe_flag("new_decoder_architecture").value_or(false);
  const bool multi_query = config.maybe_flag("multi_query").value_or(true);
  const bool parallel = config.maybe_flag("parallel_attn").value_or(true);
  if (!grouped) model.kv_heads = multi_query ? 1 : model.heads;
  const int norms = config.maybe_integer("num_ln_in_parallel_attn", 1, 2).value_or(2);
  model.norms.per_layer = grouped ? norms : parallel ? 1 : 2;
  if (config.maybe_flag("alibi").value_or(false)) model.position = PositionKind::alibi;
}

// llm-foundry's configuration_mpt.py. Without `no_bias`, linears and norms have biases.
void mpt(JsonReader& config, Transformer& model) {
  const double ratio = config.maybe_number("expansion_ratio", 0.01, 100).value_or(4);
  if (!config.has("ffn_hidden_size")) {
    const double width = std::floor(ratio * model.hidden);
    model.ffn = static_cast<int>(std::clamp(width, 1.0, double{most_width}));
  }
  if (!config.maybe_flag("no_bias").value_or(true)) {
    model.biases.qkv = model.biases.o = model.biases.mlp = true;
    model.norms.bias = true;
  }
  bool alibi = true;  // transformers' class default
  bool rope = false;
  if (auto attention = config.maybe_object("attn_config")) {
    model.kv_heads = attention->maybe_integer("kv_n_heads", 1, most_heads).value_or(model.heads);
    if (attention->maybe_text("attn_type") == "multiquery_attention") model.kv_heads = 1;
    alibi = attention->maybe_flag("alibi").value_or(alibi);
    rope = attention->maybe_flag("rope").value_or(false);
    if (attention->maybe_flag("qk_ln").value_or(false))
      attention->problem("qk_ln", "false (what it adds is not supported)");
  }
  if (alibi) model.position = PositionKind::alibi;
  if (rope) model.position = PositionKind::rope;
  if (model.position != PositionKind::learned) model.position_rows = 0;
}

// modeling_opt.py: two more position rows, no final norm after post-norm layers, and embeddings
// that may be narrower than the layers.
void opt(JsonReader& config, Transformer& model) {
  model.position_rows = std::min(model.position_rows, most_positions - 2) + 2;
  const bool before = config.maybe_flag("do_layer_norm_before").value_or(true);
  const bool removed = config.maybe_flag("_remove_final_layer_norm").value_or(false);
  model.norms.final = before && !removed;
  if (!config.maybe_flag("layer_norm_elementwise_affine").value_or(true))
    model.norms.kind = NormKind::layer_no_weight;
  const auto width = config.maybe_integer("word_embed_proj_dim", 1, most_width);
  if (width && *width != model.hidden) model.embed_dim = *width;
}

void gpt_bigcode(JsonReader& config, Transformer& model) {
  if (config.maybe_flag("multi_query").value_or(true)) model.kv_heads = 1;
}

void stablelm(JsonReader& config, Transformer& model) {
  if (config.maybe_flag("use_parallel_residual").value_or(false)) model.norms.per_layer = 1;
  if (config.maybe_flag("qk_layernorm").value_or(false)) model.qk_norm = QkNorm::per_head;
}

void cohere(JsonReader& config, Transformer& model) {
  if (config.maybe_flag("use_qk_norm").value_or(false)) model.qk_norm = QkNorm::per_head;
}

// configuration_dbrx.py: attention has an object of its own (and so has the MLP: dbrx_experts).
void dbrx(JsonReader& config, Transformer& model) {
  JsonReader attention = config.object("attn_config");
  model.kv_heads = attention.maybe_integer("kv_n_heads", 1, most_heads).value_or(1);
  if (model.moe) model.ffn = model.moe->expert_ffn;
}

// DeepSeek-V2, arXiv 2405.04434; the key num_key_value_heads is not used by it.
void latent_attention(JsonReader& config, Transformer& model) {
  LatentAttention mla;
  mla.q_lora_rank = config.maybe_integer("q_lora_rank", 1, most_width);
  mla.kv_lora_rank = config.integer("kv_lora_rank", 1, most_width);
  mla.qk_nope_head_dim = config.integer("qk_nope_head_dim", 1, most_width);
  mla.qk_rope_head_dim = config.integer("qk_rope_head_dim", 1, most_width);
  mla.v_head_dim = config.integer("v_head_dim", 1, most_width);
  model.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  model.kv_heads = model.heads;
  model.mla = mla;
}

namespace {

// configuration_glm_moe_dsa.py: which layers choose for themselves, as a list, as a pattern of
// letters or by a period; DeepSeek-V3.2 has none of these keys, and a choice in every layer.
std::string indexed_layers(JsonReader& config, int layers) {
  std::string letters = config.maybe_text("index_topk_pattern").value_or("");
  for (char& letter : letters) letter = letter == 'F' ? 'o' : 's';
  for (const std::string& type : config.texts("indexer_types"))
    letters += type == "full" ? 'o' : 's';
  const int every = config.maybe_integer("index_topk_freq", 1, most_layers).value_or(1);
  const int offset = config.maybe_integer("index_skip_topk_offset", 0, most_layers).value_or(2);
  if (letters.empty())
    for (int i = 0; i < layers; ++i)
      letters += std::max(i - offset + 1, 0) % every == 0 ? 'o' : 's';
  return letters.find('s') == std::string::npos ? "" : letters;
}

}  // namespace

void sparse_attention(JsonReader& config, Transformer& model) {
  latent_attention(config, model);
  TokenIndexer indexer;
  indexer.heads = config.integer("index_n_heads", 1, most_heads);
  indexer.head_dim = config.integer("index_head_dim", 1, most_width);
  indexer.top_k = config.integer("index_topk", 1, most_positions);
  indexer.layers = indexed_layers(config, model.layers);
  model.indexer = indexer;
}

// configuration_minicpm3.py: value heads share the hidden size out evenly unless told otherwise.
void minicpm3(JsonReader& config, Transformer& model) {
  LatentAttention mla;
  mla.q_lora_rank = config.maybe_integer("q_lora_rank", 1, most_width);
  const std::vector<std::string> keys = config.keys();  // an explicit null: one plain projection
  if (std::find(keys.begin(), keys.end(), "q_lora_rank") == keys.end()) mla.q_lora_rank = 768;
  mla.kv_lora_rank = config.maybe_integer("kv_lora_rank", 1, most_width).value_or(256);
  mla.qk_nope_head_dim = config.maybe_integer("qk_nope_head_dim", 1, most_width).value_or(64);
  mla.qk_rope_head_dim = config.maybe_integer("qk_rope_head_dim", 1, most_width).value_or(32);
  mla.v_head_dim = config.maybe_integer("v_head_dim", 1, most_width)
                       .value_or(std::max(1, model.hidden / std::max(1, model.heads)));
  model.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  model.kv_heads = model.heads;
  model.mla = mla;
}

// modeling_llama4.py: intermediate_size is the width of the experts; dense layers have a key of
// their own, and the layers listed in moe_layers must be those of the step.
void llama4(JsonReader& config, Transformer& model) {
  model.ffn = config.maybe_integer("intermediate_size_mlp", 1, most_width).value_or(16384);
  for (const double layer : config.numbers("moe_layers")) {
    const bool known = layer >= 0 && layer < model.layers && layer == std::floor(layer);
    if (known && model.is_moe_layer(static_cast<int>(layer))) continue;
    config.problem("moe_layers", "the layers that interleave_moe_layer_step gives");
    break;
  }
  // 0 where a layer has no rotary positions and sees everything: every 4th, where it isn't listed.
  const auto rotary = config.numbers("no_rope_layers");
  for (std::size_t i = 0; i < rotary.size(); ++i) {
    if ((rotary[i] == 0) == (i % 4 == 3)) continue;
    config.problem("no_rope_layers", "0 for every 4th layer, 1 for the others");
    break;
  }
}

// modeling_chatglm.py of THUDM/chatglm3-6b: without multi-query attention the group key is idle.
void chatglm(JsonReader& config, Transformer& model) {
  if (!config.maybe_flag("multi_query_attention").value_or(false)) model.kv_heads = model.heads;
  if (!config.maybe_flag("rmsnorm").value_or(true)) {
    model.norms.kind = NormKind::layer;
    model.norms.bias = true;
  }
  model.norms.final = config.maybe_flag("post_layer_norm").value_or(true);
}

// The 7B has rotary positions and says max_position_embeddings; the 13B has ALiBi and does not.
void baichuan(JsonReader& config, Transformer& model) {
  if (!config.has("max_position_embeddings")) model.position = PositionKind::alibi;
}

// modeling_gemma4.py (transformers 5.23): values are normed, and the layers that see everything
// have heads of their own; there, with attention_k_eq_v, no projection of values.
void gemma4_unified(JsonReader& config, Transformer& model) {
  SharedKeys shared;
  shared.layers = config.maybe_integer("num_kv_shared_layers", 0, most_layers).value_or(0);
  shared.double_wide_mlp = config.maybe_flag("use_double_wide_mlp").value_or(false);
  if (shared.layers > 0) model.shared_keys = shared;
  model.value_norm = true;
  if (!model.sliding_window) return;
  GlobalAttention global;
  global.head_dim = config.maybe_integer("global_head_dim", 1, most_width).value_or(512);
  global.values_are_keys = config.maybe_flag("attention_k_eq_v").value_or(false);
  const auto kv_heads = config.maybe_integer("num_global_key_value_heads", 1, most_heads);
  global.kv_heads = global.values_are_keys ? kv_heads.value_or(model.kv_heads) : model.kv_heads;
  model.global_attention = global;
}

// configuration_gemma3n.py: embeddings of each layer's own, four streams, and gates that are cut in
// the layers whose activation_sparsity_pattern is not 0, ten at the front.
void gemma3n(JsonReader& config, Transformer& model) {
  LayerEmbeddings own;
  own.width = config.maybe_integer("hidden_size_per_layer_input", 1, most_width).value_or(256);
  own.vocab = config.maybe_integer("vocab_size_per_layer_input", 1, most_vocab).value_or(262144);
  model.layer_embeddings = own;
  model.value_norm = true;
  SharedKeys shared;
  shared.layers = config.maybe_integer("num_kv_shared_layers", 0, most_layers).value_or(15);
  if (shared.layers > 0) model.shared_keys = shared;
  AlternatingUpdates altup;
  altup.streams = config.maybe_integer("altup_num_inputs", 2, 64).value_or(4);
  altup.residual_rank = config.maybe_integer("laurel_rank", 1, most_width).value_or(64);
  altup.cut_gates = model.layers > 10 ? 10 : 0;
  if (config.kind("activation_sparsity_pattern") == JsonKind::array) {
    const auto pattern = config.numbers("activation_sparsity_pattern");
    const auto end = std::find(pattern.begin(), pattern.end(), 0.0);
    if (std::any_of(end, pattern.end(), [](double share) { return share != 0; }))
      config.problem("activation_sparsity_pattern", "sparse layers at the front alone");
    altup.cut_gates = static_cast<int>(end - pattern.begin());
  }
  model.altup = altup;
  if (!config.maybe_flag("altup_correct_scale").value_or(true))
    config.problem("altup_correct_scale", "true");
}

// Each layer has embeddings of its own, unless their width is 0 or null. Experts stand beside a
// dense MLP, which here is the shared expert; three norms more.
void gemma4(JsonReader& config, Transformer& model) {
  constexpr std::string_view key = "hidden_size_per_layer_input";
  const std::vector<std::string> keys = config.keys();
  const bool told = std::find(keys.begin(), keys.end(), key) != keys.end();
  const int width = config.maybe_integer(key, 0, most_width).value_or(told ? 0 : 256);
  const auto vocab = config.maybe_integer("vocab_size_per_layer_input", 1, most_vocab);
  if (width > 0) model.layer_embeddings = {vocab.value_or(262144), width};
  gemma4_unified(config, model);
  if (!config.maybe_flag("enable_moe_block").value_or(false)) model.moe.reset();
  if (!model.moe) return;
  model.moe->shared_expert_ffn = model.ffn;
  model.moe->scaled_router = model.moe->normed_branches = true;
  model.norms.per_layer = 7;
}

// activations.py, XIELUActivation: two trained values.
void apertus(JsonReader&, Transformer& model) { model.attention_extra_per_layer = 2; }

// Where the head has rows for text alone, its width differs from the embedding's.
void apertus1p5(JsonReader& config, Transformer& model) {
  apertus(config, model);
  if (config.maybe_integer("output_vocab_size", 1, most_vocab).value_or(model.vocab) != model.vocab)
    config.problem("output_vocab_size",
                   "null (a head narrower than the vocabulary is not supported)");
}

// modeling_granite_swa.py: one attention sink per head, with a window or without.
void attention_sinks(JsonReader&, Transformer& model) {
  model.attention_extra_per_layer = model.heads;
}

// modeling_gpt_oss.py: one attention sink per head.
void gpt_oss(JsonReader&, Transformer& model) { model.attention_extra_per_layer = model.heads; }

namespace {

// Letters of Transformer::mixers for the names that newer configs list.
std::string mixer_letters(JsonReader& config) {
  constexpr std::pair<std::string_view, char> names[] = {
      {"mamba", 'M'},     {"linear_attention", 'M'},
      {"attention", '*'}, {"full_attention", '*'},
      {"mlp", '-'},       {"moe", 'E'}};
  std::string letters;
  for (const std::string& type : config.texts("layers_block_type")) {
    const auto* row = std::find_if(std::begin(names), std::end(names),
                                   [&](const auto& n) { return n.first == type; });
    if (row == std::end(names)) {
      config.problem("layers_block_type", "names out of mamba, attention, mlp, moe");
      return letters;
    }
    letters += row->second;
  }
  return letters;
}

}  // namespace

// configuration_qwen3_next.py, configuration_qwen3_5.py: attention in every fourth layer, or where
// the list says so; its queries come with a gate (modeling_qwen3_next.py, Qwen3NextAttention).
void qwen3_next(JsonReader& config, Transformer& model) {
  const int every = config.maybe_integer("full_attention_interval", 1, most_layers).value_or(4);
  const auto types = config.texts("layer_types");
  if (!types.empty() && types.size() != static_cast<std::size_t>(model.layers))
    return config.problem("layer_types", "a name for each of the layers");
  for (int i = 0; i < model.layers; ++i) {
    bool full = (i + 1) % every == 0;
    if (!types.empty()) {
      const std::string& type = types[static_cast<std::size_t>(i)];
      full = type == "full_attention";
      if (!full && type != "linear_attention")
        return config.problem("layer_types", "linear_attention or full_attention");
    }
    model.mixers += full ? 'A' : 'D';
  }
  DeltaNet delta;
  delta.key_heads = config.maybe_integer("linear_num_key_heads", 1, most_heads).value_or(16);
  delta.value_heads = config.maybe_integer("linear_num_value_heads", 1, most_heads).value_or(32);
  delta.key_dim = config.maybe_integer("linear_key_head_dim", 1, most_width).value_or(128);
  delta.value_dim = config.maybe_integer("linear_value_head_dim", 1, most_width).value_or(128);
  delta.convolution = config.maybe_integer("linear_conv_kernel_dim", 1, most_width).value_or(4);
  model.delta = delta;
  model.attention_gate = config.maybe_flag("attn_output_gate").value_or(true);
  if (!config.numbers("mlp_only_layers").empty())
    config.problem("mlp_only_layers", "an empty list (dense layers among experts)");
}

// configuration_nemotron_h.py: one mixer per layer, by a pattern of letters or a list of names.
void nemotron_h(JsonReader& config, Transformer& model) {
  const std::string listed = mixer_letters(config);
  model.mixers = config.maybe_text("hybrid_override_pattern").value_or(listed);
  if (model.mixers.empty()) config.problem("hybrid_override_pattern", "a letter for each layer");
  model.layers = static_cast<int>(model.mixers.size());
  StateSpace mamba;
  mamba.heads = config.maybe_integer("mamba_num_heads", 1, most_heads).value_or(128);
  mamba.head_dim = config.maybe_integer("mamba_head_dim", 1, most_width).value_or(64);
  mamba.groups = config.maybe_integer("n_groups", 1, most_heads).value_or(8);
  mamba.state = config.maybe_integer("ssm_state_size", 1, most_width).value_or(128);
  mamba.convolution = config.maybe_integer("conv_kernel", 1, most_width).value_or(4);
  mamba.chunk = config.maybe_integer("chunk_size", 1, most_width).value_or(128);
  model.mamba = mamba;
  if (model.moe && config.kind("moe_latent_size") == JsonKind::integer)
    model.moe->latent = config.integer("moe_latent_size", 1, most_width);
}

// configuration_glm4_moe.py: GLM-4.5 norms queries and keys, GLM-4.5-Air does not.
void glm4_moe(JsonReader& config, Transformer& model) {
  if (config.maybe_flag("use_qk_norm").value_or(false)) model.qk_norm = QkNorm::head_dim;
}

// modeling_ernie4_5_moe.py: experts from one layer to another, at an interval.
void ernie4_5_moe(JsonReader& config, Transformer& model) {
  if (config.maybe_integer("moe_layer_interval", 1, most_layers).value_or(1) != 1)
    config.problem("moe_layer_interval", "1 (past the dense layers, every layer has experts)");
  const int end = config.maybe_integer("moe_layer_end_index", -1, most_layers).value_or(-1);
  if (end != -1 && end != model.layers - 1)
    config.problem("moe_layer_end_index", "-1 (the last layer has experts too)");
}

// modeling_afmoe.py: a sigmoid of a projection of its own scales attention's output.
void afmoe(JsonReader&, Transformer& model) { model.attention_gate = true; }

// modeling_hunyuan_v1_moe.py has one shared expert whatever the config says; the code that lies
// with the weights reads how many there are.
void hunyuan_v1_moe(JsonReader& config, Transformer& model) {
  if (model.moe && !config.has("num_shared_expert"))
    model.moe->shared_expert_ffn = model.moe->expert_ffn;
}

// modeling_bailing_moe_v2.py, BailingMoeV2Attention.
void bailing_moe(JsonReader& config, Transformer& model) {
  const bool norms_heads = model.qk_norm != QkNorm::none;
  const bool asked = config.maybe_flag("use_qk_norm").value_or(norms_heads);
  model.qk_norm = asked ? QkNorm::head_dim : QkNorm::none;
}

// modeling_hyperclovax.py: norms behind attention and MLP where use_post_norm is not false.
void hyperclovax(JsonReader& config, Transformer& model) {
  if (!config.maybe_flag("use_post_norm").value_or(true)) model.norms.per_layer = 2;
}

void phi4_multimodal(JsonReader&, Transformer& model) {
  model.notes = "the language model alone, without what sees or hears";
}

// MiniMax-M2: a norm over the whole query and key projections.
void minimax_m2(JsonReader& config, Transformer& model) {
  if (config.maybe_flag("use_qk_norm").value_or(true)) model.qk_norm = QkNorm::full;
  if (config.maybe_text("qk_norm_type").value_or("per_layer") != "per_layer")
    config.problem("qk_norm_type", "per_layer");
  if (model.moe)
    model.moe->shared_expert_ffn =
        config.maybe_integer("shared_intermediate_size", 0, most_width).value_or(0);
}

}  // namespace shardwise::config_details
