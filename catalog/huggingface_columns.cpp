#include "catalog/huggingface_columns.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "catalog/transformer_flaws.hpp"

namespace shardwise {
namespace {

bool mentions(const JsonReader& config, std::string_view key) {
  const std::vector<std::string> keys = config.keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// An explicit null, which asks for what the code derives, not for the class default.
bool is_null(const JsonReader& config, std::string_view key) {
  return mentions(config, key) && !config.has(key);
}

int dimension(JsonReader& config, const KeyNames& names, std::optional<int> fallback, int most) {
  const std::string_view key = present_key(config, names);
  if (fallback) return config.maybe_integer(key, 1, most).value_or(*fallback);
  return config.integer(key, 1, most);
}

void read_sizes(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  const DimensionKeys& keys = *family.keys;
  const FamilyDefaults none{};
  const FamilyDefaults& fallback = family.defaults ? *family.defaults : none;
  model.layers = dimension(config, keys.layers, fallback.layers, most_layers);
  model.hidden = dimension(config, keys.hidden, fallback.hidden, most_width);
  model.heads = dimension(config, keys.heads, fallback.heads, most_heads);
  model.vocab = dimension(config, keys.vocab, fallback.vocab, most_vocab);
  model.max_positions = config.maybe_integer(present_key(config, keys.positions), 1, most_positions)
                            .value_or(fallback.positions.value_or(0));
  if (family.position != PositionKind::learned) return;
  model.position_rows = dimension(config, keys.positions, fallback.positions, most_positions);
}

void read_kv_heads(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  const std::string_view key = present_key(config, family.keys->kv_heads);
  const int absent = is_null(config, key) ? model.heads : family.kv_heads.value_or(model.heads);
  model.kv_heads = config.maybe_integer(key, 1, most_heads).value_or(absent);
}

void read_head_dim(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  const std::string_view key = present_key(config, family.keys->head_dim);
  if (const auto given = config.maybe_integer(key, 1, most_width)) {
    model.head_dim = *given;
    return;
  }
  if (family.head_dim && !is_null(config, key)) {
    model.head_dim = *family.head_dim;
    return;
  }
  model.head_dim = std::max(1, model.hidden / model.heads);
  if (config.clean() && model.hidden % model.heads != 0)
    config.problem(present_key(config, family.keys->heads),
                   "a divisor of the hidden size " + std::to_string(model.hidden));
}

// A number for all layers, or a list of it for each (Hunyuan-A13B).
int of_every_layer(JsonReader& config, const KeyNames& names, std::optional<int> fallback,
                   int most) {
  const std::string_view key = present_key(config, names);
  if (config.kind(key) != JsonKind::array) return dimension(config, names, fallback, most);
  const std::vector<double> listed = config.numbers(key);
  const double first = listed.empty() ? 0 : listed.front();
  const bool same =
      std::all_of(listed.begin(), listed.end(), [&](double value) { return value == first; });
  if (same && first >= 1 && first <= most) return static_cast<int>(first);
  config.problem(key, "one number for all layers (others by layer are not supported)");
  return 1;
}

void read_ffn(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  const std::string_view key = present_key(config, family.keys->ffn);
  if (config.kind(key) == JsonKind::array) {
    model.ffn = of_every_layer(config, family.keys->ffn, std::nullopt, most_width);
    return;
  }
  if (const auto given = config.maybe_integer(key, 1, most_width)) {
    model.ffn = *given;
    return;
  }
  if (config.has(key)) return;  // of a wrong kind, and reported
  std::optional<int> fallback = family.defaults ? family.defaults->ffn : std::nullopt;
  if (family.ffn_per_hidden) fallback = *family.ffn_per_hidden * model.hidden;
  if (!fallback && model.moe) fallback = model.moe->expert_ffn;
  if (!fallback) config.problem(key, "a whole number of at least 1");
  model.ffn = fallback.value_or(1);
}

void add_biases(Biases& to, const Biases& more) {
  to.qkv |= more.qkv;
  to.o |= more.o;
  to.mlp |= more.mlp;
  to.experts |= more.experts;
  to.router |= more.router;
  to.lm_head |= more.lm_head;
}

void set_biases(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  model.biases = family.biases;
  for (const BiasKey& row : family.bias_keys)
    if (!row.key.empty() && config.maybe_flag(row.key).value_or(row.fallback))
      add_biases(model.biases, row.sets);
}

// Qwen's `mlp_only_layers` may name any layers; we know them at the front only.
int dense_layers_listed(JsonReader& config) {
  const std::vector<double> listed = config.numbers("mlp_only_layers");
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] == static_cast<double>(i)) continue;
    config.problem("mlp_only_layers", "the layers from 0 on, in order (others are not supported)");
    break;
  }
  return static_cast<int>(std::min<std::size_t>(listed.size(), most_layers));
}

// "dense" or "sparse" for each layer, as newer files list them; we know dense ones at the front.
std::optional<int> dense_layers_named(JsonReader& config) {
  const std::vector<std::string> listed = config.texts("mlp_layer_types");
  if (listed.empty()) return std::nullopt;
  const auto sparse = std::find(listed.begin(), listed.end(), "sparse");
  if (std::find(sparse, listed.end(), "dense") != listed.end())
    config.problem("mlp_layer_types", "dense layers at the front alone");
  return static_cast<int>(sparse - listed.begin());
}

int shared_width(JsonReader& config, const ExpertKeys& keys, int expert_ffn) {
  if (!keys.shared_width.empty()) return config.integer(keys.shared_width, 0, most_width);
  if (keys.shared_count.empty()) return 0;
  if (config.kind(keys.shared_count) == JsonKind::array)
    return of_every_layer(config, {keys.shared_count}, 0, 1000) * expert_ffn;
  return config.maybe_integer(keys.shared_count, 0, 1000).value_or(0) * expert_ffn;
}

// The groups that a token's experts come from; "greedy" looks at all experts, whatever they say
// (DeepSeek-V2-Lite; transformers models/deepseek_v2/modeling_deepseek_v2.py, topk_method).
void set_expert_groups(JsonReader& config, MixtureOfExperts& moe) {
  const bool told =
      config.kind("n_group") == JsonKind::integer && config.kind("topk_group") == JsonKind::integer;
  if (!told || config.maybe_text("topk_method").value_or("") == "greedy") return;
  moe.groups = config.integer("n_group", 1, most_experts);
  moe.chosen_groups = config.integer("topk_group", 1, most_experts);
}

MixtureOfExperts experts_of(JsonReader& config, const ExpertKeys& keys) {
  MixtureOfExperts moe;
  moe.experts = of_every_layer(config, keys.experts, keys.default_experts, most_experts);
  moe.top_k = of_every_layer(config, keys.top_k, keys.default_top_k, most_experts);
  moe.expert_ffn = of_every_layer(config, keys.width, std::nullopt, most_width);
  moe.shared_expert_ffn = shared_width(config, keys, moe.expert_ffn);
  moe.shared_gate = keys.shared_gate && moe.shared_expert_ffn > 0;
  if (!keys.first_dense.empty())
    moe.dense_layers =
        config.maybe_integer(keys.first_dense, 0, most_layers).value_or(keys.default_first_dense);
  else
    moe.dense_layers = dense_layers_listed(config);
  if (const auto named = dense_layers_named(config)) moe.dense_layers = *named;
  if (!keys.every.empty()) moe.every = config.maybe_integer(keys.every, 1, most_layers).value_or(1);
  set_expert_groups(config, moe);
  return moe;
}

void set_experts(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  if (!family.experts) return;
  const ExpertKeys& keys = *family.experts;
  const std::string_view count = present_key(config, keys.experts);
  if (keys.optional && !config.has(count)) return;
  if (keys.zero_is_dense && config.kind(count) == JsonKind::integer &&
      config.integer(count, 0, most_experts) == 0)
    return;
  if (!keys.nested.empty()) {
    JsonReader nested = config.object(keys.nested);
    model.moe = experts_of(nested, keys);
    return;
  }
  model.moe = experts_of(config, keys);
  if (config.maybe_integer("moe_layer_freq", 1, most_layers).value_or(1) != 1)
    config.problem("moe_layer_freq", "1 (past the dense layers, every layer has experts)");
}

using LayerTypes = std::vector<std::string>;

// What each layer is, where the config says it. Layers of another kind than the family's would be
// counted and timed wrongly.
LayerTypes read_layer_types(JsonReader& config, const ConfigFamily& family,
                            const Transformer& model) {
  LayerTypes types = config.texts("layer_types");
  if (!types.empty() && types.size() != static_cast<std::size_t>(model.layers))
    config.problem("layer_types",
                   "one entry for each of " + std::to_string(model.layers) + " layers");
  if (family.mixes_layers) return {};  // its details read them
  for (const std::string& type : types) {
    if (type.find("linear") == std::string::npos && type.find("mamba") == std::string::npos)
      continue;
    config.problem("layer_types",
                   "attention layers only (\"" + printable(type) + "\" is not supported)");
    break;
  }
  return types;
}

// Where the window holds, a letter for each layer: as listed, or by the family's rule.
std::string windowed_layers(const LayerTypes& types, const WindowKeys& keys, int every,
                            int layers) {
  std::string letters(static_cast<std::size_t>(layers), 'w');
  for (int i = 0; i < layers; ++i) {
    const bool full = types.empty() ? every > 1 && i % every == (keys.full_first ? 0 : every - 1)
                                    : types[static_cast<std::size_t>(i)] == "full_attention";
    if (full) letters[static_cast<std::size_t>(i)] = 'f';
  }
  return letters;
}

// "wwwf" over and over is said by its period; anything else by its letters.
void set_windows(const std::string& letters, Transformer& model) {
  const std::size_t full = letters.find('f');
  model.sliding_window_every = full == std::string::npos ? 1 : static_cast<int>(full) + 1;
  for (int i = 0; i < model.layers; ++i)
    if (model.sees_window(i) != (letters[static_cast<std::size_t>(i)] == 'w')) {
      model.windows = letters;
      model.sliding_window_every = 1;
      return;
    }
}

void read_window(JsonReader& config, const ConfigFamily& family, const LayerTypes& types,
                 Transformer& model) {
  if (!family.window || (!types.empty() && types.size() != std::size_t(model.layers))) return;
  const WindowKeys& keys = *family.window;
  if (!keys.switch_key.empty() && !config.maybe_flag(keys.switch_key).value_or(false)) return;
  if (is_null(config, keys.window)) return;
  const auto window = config.maybe_integer(keys.window, 1, most_positions);
  if (!window && !keys.fallback) return;
  int every = keys.every;
  if (!keys.every_key.empty() && config.kind(keys.every_key) == JsonKind::integer)
    every = config.integer(keys.every_key, 1, most_layers);
  const int width = window.value_or(keys.fallback.value_or(1));
  if (model.max_positions > 0 && width >= model.max_positions) return;  // hides nothing
  const std::string letters = windowed_layers(types, keys, every, model.layers);
  if (letters.find('w') == std::string::npos) return;
  model.sliding_window = width;
  model.window_restarts = keys.restarts;
  set_windows(letters, model);
}

void refuse_flags(JsonReader& config, const ConfigFamily& family) {
  for (const std::string_view flag : family.unsupported_flags)
    if (!flag.empty() && config.maybe_flag(flag).value_or(false))
      config.problem(flag, "false (what it adds is not supported)");
  if (config.maybe_flag("is_encoder_decoder").value_or(false))
    config.problem("is_encoder_decoder", "false (only decoders are supported)");
}

// The config may name another function than its configuration class does.
MlpFunction mlp_function(JsonReader& config, const ConfigFamily& family) {
  if (family.code.mlp == MlpFunction::keeps_input || family.code.mlp == MlpFunction::computes_again)
    return family.code.mlp;
  for (const std::string_view key : {"activation_function", "hidden_act"}) {
    const std::string name = config.maybe_text(key).value_or("");
    if (name == "gelu_new" || name == "gelu_fast") return MlpFunction::written_out;
    if (name == "relu") return MlpFunction::keeps_result;
    if (!name.empty()) return MlpFunction::keeps_input;
  }
  return family.code.mlp;
}

}  // namespace

void read_columns(JsonReader& config, const ConfigFamily& family, Transformer& model) {
  model.code = family.code;
  model.code.mlp = mlp_function(config, family);
  model.gated_mlp = family.gated;
  model.norms = family.norms;
  model.qk_norm = family.qk_norm;
  model.position = family.position;
  model.tied_embeddings = family.tied;
  read_sizes(config, family, model);
  read_kv_heads(config, family, model);
  read_head_dim(config, family, model);
  set_experts(config, family, model);
  read_ffn(config, family, model);
  set_biases(config, family, model);
  read_window(config, family, read_layer_types(config, family, model), model);
  refuse_flags(config, family);
  if (family.details) family.details(config, model);
}

}  // namespace shardwise
