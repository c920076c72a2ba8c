// What the columns of a row cannot say of models that mix attention with other mixers, as whole
// blocks: which layer is what, and the sizes of those mixers. Each function names the file it was
// read in (transformers 5.23 of PyPI, models/<model_type>).
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "catalog/huggingface_family.hpp"
#include "catalog/names.hpp"
#include "catalog/transformer_flaws.hpp"

namespace shardwise::config_details {
namespace {

struct LayerName {
  std::string_view name;
  char letter;  // of Transformer::mixers
};

// A letter for each layer that the config lists under `key`; nothing where it lists none.
template <std::size_t n>
std::string listed_layers(JsonReader& config, std::string_view key, const LayerName (&names)[n]) {
  std::string letters;
  for (const std::string& type : config.texts(key)) {
    const auto* row = std::find_if(std::begin(names), std::end(names),
                                   [&](const LayerName& r) { return r.name == type; });
    if (row == std::end(names)) {
      config.problem(key, "names out of " + joined(names_in(names)));
      return {};
    }
    letters += row->letter;
  }
  return letters;
}

// `other` in every layer but those whose numbers the config lists under `key`.
std::string attention_at(JsonReader& config, std::string_view key, int layers, char other) {
  std::string letters(static_cast<std::size_t>(layers), other);
  for (const double layer : config.numbers(key)) {
    if (layer < 0 || layer >= layers || layer != std::floor(layer)) {
      config.problem(key, "numbers of layers, from 0 on");
      break;
    }
    letters[static_cast<std::size_t>(layer)] = 'A';
  }
  return letters;
}

// The mixer of configuration_bamba.py, which Granite and Falcon-H1 took over: heads are as wide as
// the inner width shared out evenly unless told otherwise.
StateSpace bamba_mixer(JsonReader& config, const Transformer& model, std::optional<int> inner) {
  StateSpace mamba;
  mamba.heads = config.maybe_integer("mamba_n_heads", 1, most_heads).value_or(128);
  mamba.groups = config.maybe_integer("mamba_n_groups", 1, most_heads).value_or(1);
  mamba.state = config.maybe_integer("mamba_d_state", 1, most_width).value_or(256);
  mamba.convolution = config.maybe_integer("mamba_d_conv", 1, most_width).value_or(4);
  mamba.chunk = config.maybe_integer("mamba_chunk_size", 1, most_width).value_or(256);
  const int expand = config.maybe_integer("mamba_expand", 1, 64).value_or(2);
  const int width = inner.value_or(std::min(most_width, expand * model.hidden));
  mamba.head_dim = std::max(1, width / mamba.heads);
  if (width % mamba.heads != 0)
    config.problem("mamba_n_heads", "a divisor of the inner width " + std::to_string(width));
  if (config.kind("mamba_d_head") == JsonKind::integer &&
      config.integer("mamba_d_head", 1, most_width) != mamba.head_dim)
    config.problem("mamba_d_head", "the inner width " + std::to_string(width) + " over " +
                                       std::to_string(mamba.heads) + " heads");
  if (!config.maybe_flag("mamba_conv_bias").value_or(true))
    config.problem("mamba_conv_bias", "true (convolutions without a bias are not supported)");
  return mamba;
}

}  // namespace

void bamba(JsonReader& config, Transformer& model) {
  model.mixers = attention_at(config, "attn_layer_indices", model.layers, 'S');
  model.mamba = bamba_mixer(config, model, std::nullopt);
}

// Without experts, the shared MLP is the only one.
void granite_moe_hybrid(JsonReader& config, Transformer& model) {
  constexpr LayerName names[] = {
      {"mamba", 'S'}, {"linear_attention", 'S'}, {"attention", 'A'}, {"full_attention", 'A'}};
  const bool newer = config.has("layer_types");
  model.mixers = listed_layers(config, newer ? "layer_types" : "layers_block_type", names);
  if (model.mixers.empty()) model.mixers.assign(static_cast<std::size_t>(model.layers), 'S');
  if (model.mixers.find('S') == std::string::npos) {
    model.mixers.clear();
  } else {
    model.mamba = bamba_mixer(config, model, std::nullopt);
  }
  model.ffn = config.maybe_integer("shared_intermediate_size", 1, most_width).value_or(1024);
  if (config.maybe_text("position_embedding_type").value_or("nope") != "rope")
    model.position = PositionKind::none;
}

// configuration_jamba.py: attention in one layer of a period, Mamba-1 in the others; experts in
// another period's last layer, and none where there is one expert.
void jamba(JsonReader& config, Transformer& model) {
  const int period = config.maybe_integer("attn_layer_period", 1, most_layers).value_or(8);
  const int offset = config.maybe_integer("attn_layer_offset", 0, most_layers).value_or(4);
  for (int i = 0; i < model.layers; ++i) model.mixers += i % period == offset ? 'A' : 'S';
  StateSpace mamba;
  const int expand = config.maybe_integer("mamba_expand", 1, 64).value_or(2);
  mamba.heads = std::min(most_heads, expand * model.hidden);
  mamba.head_dim = mamba.groups = 1;
  mamba.state = config.maybe_integer("mamba_d_state", 1, most_width).value_or(16);
  mamba.convolution = config.maybe_integer("mamba_d_conv", 1, most_width).value_or(4);
  mamba.step_rank = (model.hidden + 15) / 16;  // "auto"
  if (config.kind("mamba_dt_rank") == JsonKind::integer)
    mamba.step_rank = config.integer("mamba_dt_rank", 1, most_width);
  model.mamba = mamba;
  if (!config.maybe_flag("mamba_conv_bias").value_or(true))
    config.problem("mamba_conv_bias", "true (convolutions without a bias are not supported)");
  if (!model.moe || model.moe->experts == 1) return model.moe.reset();
  model.moe->every = config.maybe_integer("expert_layer_period", 1, most_layers).value_or(2);
  if (config.maybe_integer("expert_layer_offset", 0, most_layers).value_or(1) !=
      model.moe->every - 1)
    config.problem("expert_layer_offset", "the last layer of each expert_layer_period");
}

// configuration_minimax.py lists names; the files of MiniMax-Text-01 and M1, whose code lies beside
// their weights, have 1 for attention and 0 for lightning attention.
void minimax(JsonReader& config, Transformer& model) {
  constexpr LayerName names[] = {{"linear_attention", 'L'}, {"full_attention", 'A'}};
  model.mixers = listed_layers(config, "layer_types", names);
  const auto types = config.numbers("attn_type_list");
  if (model.mixers.empty())
    for (const double type : types) model.mixers += type == 0 ? 'L' : 'A';
  if (model.mixers.empty())
    for (int i = 0; i < model.layers; ++i) model.mixers += i % 2 == 0 ? 'A' : 'L';
  model.lightning = LightningAttention{
      model.heads, model.head_dim, config.maybe_integer("block_size", 1, most_width).value_or(256)};
  if (config.maybe_integer("shared_intermediate_size", 0, most_width).value_or(0) != 0)
    config.problem("shared_intermediate_size", "0 (its shared expert is not supported)");
}

// modeling_falcon_h1.py, FalconH1DecoderLayer: both mixers read one norm and are added up. The
// multipliers are numbers in the code, not parameters.
void falcon_h1(JsonReader& config, Transformer& model) {
  model.mixers.assign(static_cast<std::size_t>(model.layers), 'B');
  constexpr int class_default = 1024;  // an explicit null: what mamba_expand gives
  const std::vector<std::string> keys = config.keys();
  std::optional<int> inner = config.maybe_integer("mamba_d_ssm", 1, most_width);
  if (std::find(keys.begin(), keys.end(), "mamba_d_ssm") == keys.end()) inner = class_default;
  model.mamba = bamba_mixer(config, model, inner);
  model.mamba->normed = config.maybe_flag("mamba_rms_norm").value_or(false);
  if (config.maybe_flag("projectors_bias").value_or(false))
    config.problem("projectors_bias", "false (what it adds is not supported)");
}

// configuration_olmo_hybrid.py: attention in every fourth layer, or where the list says so; unless
// told otherwise DeltaNet's heads are as many as attention's, keys in all three quarters of the
// hidden size wide, and values twice that.
void olmo_hybrid(JsonReader& config, Transformer& model) {
  constexpr LayerName names[] = {{"linear_attention", 'D'}, {"full_attention", 'A'}};
  model.mixers = listed_layers(config, "layer_types", names);
  for (int i = static_cast<int>(model.mixers.size()); i < model.layers; ++i)
    model.mixers += i % 4 == 3 ? 'A' : 'D';
  const auto size = [&](std::string_view key, int most, int fallback) {
    return config.maybe_integer(key, 1, most).value_or(std::max(1, fallback));
  };
  DeltaNet delta;
  delta.key_heads = size("linear_num_key_heads", most_heads, model.heads);
  delta.value_heads = size("linear_num_value_heads", most_heads, model.heads);
  const int shared_out = static_cast<int>(0.75 * model.hidden / delta.key_heads);
  delta.key_dim = size("linear_key_head_dim", most_width, shared_out);
  delta.value_dim =
      size("linear_value_head_dim", most_width, std::min(most_width, 2 * delta.key_dim));
  delta.convolution = size("linear_conv_kernel_dim", most_width, 4);
  model.delta = delta;
}

namespace {

// Numbers of layers from 1 on, as Kimi's files list them: a letter at each.
void put_layers(JsonReader& config, std::string_view key, char letter, std::string& letters) {
  for (const double layer : config.numbers(key)) {
    if (layer < 1 || layer > static_cast<double>(letters.size()) || layer != std::floor(layer))
      return config.problem(key, "numbers of layers, from 1 on");
    letters[static_cast<std::size_t>(layer) - 1] = letter;
  }
}

}  // namespace

// configuration_kimi_linear.py: sizes of the mixer in an object of its own, or under names that
// transformers writes; attention is latent and knows no positions.
void kimi_linear(JsonReader& config, Transformer& model) {
  latent_attention(config, model);
  if (config.has("attn_res_block_size"))  // Kimi K3, whose files say kimi_linear too
    config.problem("attn_res_block_size",
                   "none (layers that attend to what earlier ones gave are not supported)");
  if (config.has("routed_expert_hidden_size"))
    config.problem("routed_expert_hidden_size", "none (its experts' latent is not supported)");
  model.position = PositionKind::none;
  constexpr LayerName names[] = {{"linear_attention", 'D'}, {"full_attention", 'A'}};
  model.mixers = listed_layers(config, "layer_types", names);
  int heads = config.maybe_integer("linear_num_heads", 1, most_heads).value_or(32);
  int width = config.maybe_integer("linear_head_dim", 1, most_width).value_or(128);
  int taps = config.maybe_integer("linear_conv_kernel_dim", 1, most_width).value_or(4);
  if (auto own = config.maybe_object("linear_attn_config")) {
    heads = own->maybe_integer("num_heads", 1, most_heads).value_or(heads);
    width = own->maybe_integer("head_dim", 1, most_width).value_or(width);
    taps = own->maybe_integer("short_conv_kernel_size", 1, most_width).value_or(taps);
    if (model.mixers.empty() && own->has("full_attn_layers")) {
      model.mixers.assign(static_cast<std::size_t>(model.layers), 'D');
      put_layers(*own, "full_attn_layers", 'A', model.mixers);
    }
  }
  for (int i = static_cast<int>(model.mixers.size()); i < model.layers; ++i)
    model.mixers += i > 0 && i % 4 == 0 ? 'A' : 'D';
  model.delta = DeltaNet{heads, heads, width, width, taps, 64, width};
}

namespace {

void short_convolutions(JsonReader& config, Transformer& model) {
  constexpr LayerName names[] = {{"conv", 'C'}, {"short_conv", 'C'}, {"full_attention", 'A'}};
  model.mixers = listed_layers(config, "layer_types", names);
  if (model.mixers.empty()) {
    const bool mixed = config.has("full_attn_idxs");
    model.mixers = attention_at(config, "full_attn_idxs", model.layers, mixed ? 'C' : 'A');
  }
  model.convolution =
      GatedConvolution{config.maybe_integer("conv_L_cache", 1, most_width).value_or(3)};
  model.tied_embeddings = config.maybe_flag("tie_embedding").value_or(model.tied_embeddings);
}

}  // namespace

// modeling_lfm2.py, Lfm2MLP: two thirds of what the config says, times a factor, rounded up.
void lfm2(JsonReader& config, Transformer& model) {
  short_convolutions(config, model);
  if (!config.maybe_flag("block_auto_adjust_ff_dim").value_or(true)) return;
  const int multiple = config.maybe_integer("block_multiple_of", 1, most_width).value_or(256);
  const double factor = config.maybe_number("block_ffn_dim_multiplier", 0.01, 100).value_or(1);
  const int width = static_cast<int>(
      std::min(std::floor(factor * std::floor(2.0 * model.ffn / 3)), double{most_width}));
  model.ffn = std::max(1, (width + multiple - 1) / multiple * multiple);
}

// configuration_lfm3.py (transformers 5.24): attention in every second layer, by turns with a
// window and without one; two norms more, and a gate for each head.
void lfm3(JsonReader& config, Transformer& model) {
  model.convolution =
      GatedConvolution{config.maybe_integer("conv_L_cache", 1, most_width).value_or(7)};
  constexpr LayerName names[] = {
      {"conv", 'C'}, {"full_attention", 'A'}, {"sliding_attention", 'A'}};
  model.mixers = listed_layers(config, "layer_types", names);
  for (const std::string& type : config.texts("layer_types"))
    model.windows += type == "sliding_attention" ? 'w' : 'f';
  for (int i = static_cast<int>(model.mixers.size()); i < model.layers; ++i) {
    model.mixers += i % 2 == 0 && i > 0 ? 'A' : 'C';
    model.windows += i % 4 == 0 && i > 0 ? 'w' : 'f';
  }
  model.sliding_window = config.maybe_integer("sliding_window", 1, most_positions).value_or(256);
  if (model.windows.find('w') == std::string::npos) {
    model.windows.clear();
    model.sliding_window.reset();
  }
  if (!config.maybe_flag("use_sandwich_norm").value_or(true)) model.norms.per_layer = 2;
  model.head_gate = config.maybe_flag("use_attention_gate").value_or(true);
}

void lfm2_moe(JsonReader& config, Transformer& model) { short_convolutions(config, model); }

}  // namespace shardwise::config_details
