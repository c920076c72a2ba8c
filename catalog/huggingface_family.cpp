#include "catalog/huggingface_family.hpp"

#include <algorithm>
#include <vector>

#include "catalog/huggingface_rows.hpp"

namespace shardwise {
namespace {

using namespace family_columns;

constexpr DimensionKeys gpt2_keys{
    .hidden = {"n_embd", "hidden_size"},
    .layers = {"n_layer", "num_hidden_layers"},
    .heads = {"n_head", "num_attention_heads"},
    .kv_heads = {"n_head_kv"},
    .ffn = {"n_inner", "intermediate_size"},
    .positions = {"n_positions", "n_ctx", "max_position_embeddings"},
};
constexpr DimensionKeys bloom_keys{
    .hidden = {"hidden_size", "n_embed"},
    .layers = {"n_layer", "num_hidden_layers"},
    .heads = {"n_head", "num_attention_heads"},
    .ffn = {"n_inner"},
    .positions = {"seq_length"},
};
constexpr DimensionKeys falcon_keys{
    .hidden = {"hidden_size", "n_embed"},
    .layers = {"num_hidden_layers", "n_layer"},
    .heads = {"num_attention_heads", "n_head"},
    .kv_heads = {"num_kv_heads", "n_head_kv"},
    .ffn = {"ffn_hidden_size"},
};
constexpr DimensionKeys opt_keys{.ffn = {"ffn_dim"}};
constexpr DimensionKeys gpt_neo_keys{
    .layers = {"num_layers", "num_hidden_layers"},
    .heads = {"num_heads", "num_attention_heads"},
};
constexpr DimensionKeys chatglm_keys{
    .layers = {"num_layers", "num_hidden_layers"},
    .kv_heads = {"multi_query_group_num"},
    .head_dim = {"kv_channels"},
    .ffn = {"ffn_hidden_size"},
    .vocab = {"padded_vocab_size", "vocab_size"},
    .positions = {"seq_length"},
};
constexpr DimensionKeys qwen_keys{
    .head_dim = {"kv_channels"},
    .positions = {"seq_length", "max_position_embeddings"},
};
constexpr DimensionKeys baichuan_keys{
    .positions = {"max_position_embeddings", "model_max_length"},
};
constexpr DimensionKeys exaone_keys{.layers = {"num_layers", "num_hidden_layers"}};
constexpr DimensionKeys lfm2_keys{.ffn = {"block_ff_dim", "intermediate_size"}};
constexpr WindowKeys mistral_window{.fallback = 4096};
constexpr WindowKeys gemma2_window{.fallback = 4096, .every = 2};
constexpr WindowKeys gemma3_window{
    .fallback = 4096, .every = 6, .every_key = "sliding_window_pattern"};
constexpr WindowKeys cohere2_window{
    .fallback = 4096, .every = 4, .every_key = "sliding_window_pattern"};
constexpr WindowKeys gpt_neo_window{.window = "window_size", .fallback = 256, .every = 2};

// google/gemma-3-*: text_config leaves out whatever equals the class default.
constexpr FamilyDefaults gemma3_defaults{
    .hidden = 2304, .layers = 26, .heads = 8, .ffn = 9216, .vocab = 262208, .positions = 131072};

// transformers 5.23 models/gemma3n/configuration_gemma3n.py.
constexpr WindowKeys gemma3n_window{.fallback = 512, .every = 5};
constexpr FamilyDefaults gemma3n_defaults{
    .hidden = 2048, .layers = 35, .heads = 8, .ffn = 16384, .vocab = 262400, .positions = 32768};

// transformers 5.23 models/gemma4_unified/configuration_gemma4_unified.py.
constexpr FamilyDefaults gemma4_unified_defaults{
    .hidden = 2304, .layers = 30, .heads = 8, .ffn = 9216, .vocab = 262144, .positions = 262144};
constexpr Norms one_layer_norm{.kind = NormKind::layer, .per_layer = 1, .bias = true};
constexpr Norms bloom_norms{.kind = NormKind::layer, .bias = true, .embedding = true};
constexpr Norms one_bare_layer_norm{.kind = NormKind::layer, .per_layer = 1};
constexpr Norms weightless_norms{.kind = NormKind::layer_no_weight};
constexpr Biases output_bias{.o = true};
constexpr Biases every_bias{.qkv = true, .o = true, .mlp = true};
constexpr Biases every_bias_and_head{.qkv = true, .o = true, .mlp = true, .lm_head = true};
constexpr BiasKey seed_qkv_on{"attention_bias", qkv_bias, true};
constexpr BiasKey seed_output_off{"attention_out_bias", output_bias, false};
constexpr PositionKind learned = PositionKind::learned;

// transformers 5.23 of PyPI, models/<model_type>/modeling_<model_type>.py; activations.py
// (NewGELUActivation, which the configuration classes of these name).
constexpr ModelCode gemma2_code{.wide_norms = true, .caps_scores = true};
constexpr ModelCode written_out_gelu{.mlp = MlpFunction::written_out};
constexpr ModelCode relu_code{.mlp = MlpFunction::keeps_result};
constexpr ModelCode bloom_code{.mlp = MlpFunction::computes_again, .fused_qkv = true};
constexpr ModelCode gpt2_code{
    .mlp = MlpFunction::written_out,
    .fused_qkv = true,
    .half_softmax = true,
    .loss_ends_graph = true};  // GPT2LMHeadModel: transformers 4.57.1 modeling_utils.py, loss_type
// transformers 4.31.0 models/gpt_bigcode/modeling_gpt_bigcode.py (upcast_masked_softmax).
constexpr ModelCode bigcode_code{.fused_qkv = true, .scripts_softmax = true};
constexpr ModelCode fused_projections{.fused_qkv = true, .fused_gate_up = true};
constexpr ModelCode qwen_code{.fused_qkv = true, .flash_rotary = true};
constexpr ModelCode scaled_inputs{.scaled_inputs = true};
constexpr ModelCode scaled_branches{.scales_branches = true};

// The first layer of each four sees everything, not the last (configuration_cwm.py).
constexpr WindowKeys cwm_window{.fallback = 8192, .every = 4, .full_first = true};

// transformers 5.24 configuration_granite_swa.py: i % 4 == 0.
constexpr WindowKeys granite_window{.fallback = 128, .every = 4, .full_first = true};

// clang-format off
constexpr auto dense_rows = std::to_array<ConfigFamily>({
    // Llama and what copies its layout.
    {.model_type = "llama", .keys = &llama_keys, .bias_keys = {attention_off, mlp_off}},
    {.model_type = "mistral", .keys = &llama_keys, .kv_heads = 8, .window = &mistral_window},
    {.model_type = "ministral3", .keys = &llama_keys, .window = &plain_window},
    {.model_type = "seed_oss", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {seed_qkv_on, seed_output_off},
     .unsupported_flags = {"mlp_bias"}},
    {.model_type = "arcee", .keys = &llama_keys, .gated = false,
     .bias_keys = {attention_off, mlp_off}},
    {.model_type = "apertus", .keys = &llama_keys, .gated = false, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim, .details = config_details::apertus},
    {.model_type = "apertus1p5_text", .keys = &llama_keys, .gated = false,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .details = config_details::apertus1p5},
    {.model_type = "smollm3", .keys = &llama_keys, .kv_heads = 4, .tied = true,
     .bias_keys = {attention_off, mlp_off}, .window = &qwen_window},
    {.model_type = "internlm", .keys = &llama_keys,
     .bias_keys = {BiasKey{"bias", attention_biases, true}}},
    {.model_type = "internlm2", .keys = &llama_keys,
     .bias_keys = {BiasKey{"bias", attention_biases, false}}},
    {.model_type = "baichuan", .keys = &baichuan_keys, .details = config_details::baichuan},
    {.model_type = "orion", .keys = &llama_keys, .norms = layer_norms,
     .bias_keys = {attention_off}},
    {.model_type = "granite", .keys = &llama_keys, .bias_keys = {attention_off, mlp_off},
     .code = scaled_branches},
    {.model_type = "granite_docling_text", .keys = &llama_keys, .tied = true,
     .bias_keys = {attention_off, mlp_off}, .code = scaled_branches},
    {.model_type = "granite4_vision_text", .keys = &llama_keys,
     .bias_keys = {attention_off, mlp_off}, .code = scaled_branches},
    {.model_type = "granite_swa", .keys = &llama_keys, .kv_heads = 4, .tied = true,
     .bias_keys = {attention_off, mlp_off}, .window = &granite_window,
     .code = scaled_branches, .details = config_details::attention_sinks},
    {.model_type = "hunyuan_v1_dense", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim},
    {.model_type = "hunyuan_vl_text", .keys = &llama_keys, .tied = true,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim},
    {.model_type = "ernie4_5", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128, .tied = true,
     .unsupported_flags = {"use_bias"}},
    {.model_type = "paddleocr_vl_text", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128,
     .tied = true, .unsupported_flags = {"use_bias"}},
    {.model_type = "minicpm3", .keys = &llama_keys, .tied = true, .code = scaled_branches,
     .unsupported_flags = {"attention_bias", "mlp_bias"}, .details = config_details::minicpm3},
    {.model_type = "mimo", .keys = &llama_keys,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}, .window = &qwen_window},
    {.model_type = "exaone", .keys = &exaone_keys, .tied = true,
     .bias_keys = {attention_off, mlp_off}},
    {.model_type = "exaone4", .keys = &llama_keys, .qk_norm = QkNorm::head_dim,
     .window = &fourth_full_window},
    {.model_type = "helium", .keys = &llama_keys, .head_dim = 128,
     .bias_keys = {attention_off, mlp_off}},
    {.model_type = "cwm", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {mlp_off}, .window = &cwm_window},
    {.model_type = "ministral", .keys = &llama_keys, .kv_heads = 8, .window = &mistral_window},
    {.model_type = "internlm3", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128,
     .bias_keys = {attention_off, mlp_off}, .unsupported_flags = {"bias", "qkv_bias"}},
    {.model_type = "iquestcoder", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {attention_off, mlp_off}},
    {.model_type = "hyperclovax", .keys = &llama_keys, .norms = four_rms,
     .bias_keys = {attention_off, mlp_off}, .code = scaled_branches,
     .details = config_details::hyperclovax},
    {.model_type = "jais2", .keys = &llama_keys, .gated = false, .norms = layer_norms,
     .bias_keys = {BiasKey{"attention_bias", attention_biases, true},
                   BiasKey{"mlp_bias", mlp_biases, true}}},
    {.model_type = "youtu", .keys = &llama_keys, .head_dim = 192, .tied = true,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    // Qwen.
    // modeling_qwen.py of Qwen/Qwen-7B: c_attn, which is split; w1 and w2 are linears of their own;
    // apply_rotary_pos_emb calls flash_attn.layers.rotary on t.float() where it can be imported.
    {.model_type = "qwen", .keys = &qwen_keys, .biases = qkv_bias, .code = qwen_code,
     .details = config_details::qwen},
    {.model_type = "qwen2", .keys = &llama_keys, .kv_heads = 32, .biases = qkv_bias,
     .window = &qwen_window},
    {.model_type = "qwen2_vl", .keys = &llama_keys, .kv_heads = 32, .biases = qkv_bias,
     .window = &qwen_window},
    {.model_type = "qwen2_vl_text", .keys = &llama_keys, .kv_heads = 32, .biases = qkv_bias,
     .window = &qwen_window},
    {.model_type = "qwen2_5_vl", .keys = &llama_keys, .kv_heads = 32, .biases = qkv_bias,
     .window = &qwen_window},
    {.model_type = "qwen2_5_vl_text", .keys = &llama_keys, .kv_heads = 32, .biases = qkv_bias,
     .window = &qwen_window},
    {.model_type = "qwen3", .keys = &llama_keys, .kv_heads = 32, .head_dim = 128,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .window = &qwen_window,
     .code = keeps_head_norms},
    {.model_type = "qwen2_5_omni_text", .keys = &llama_keys, .kv_heads = 32, .biases = qkv_bias,
     .window = &qwen_window},
    {.model_type = "qwen3_vl_text", .keys = &llama_keys, .kv_heads = 32, .head_dim = 128,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim},
    {.model_type = "qwen3_5_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .code = wide_kept_norms,
     .mixes_layers = true, .details = config_details::qwen3_next},
    // Gemma.
    {.model_type = "gemma", .keys = &llama_keys, .kv_heads = 16, .head_dim = 256, .tied = true,
     .bias_keys = {attention_off}, .code = wide_norms},
    {.model_type = "gemma2", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256, .tied = true,
     .norms = four_rms, .bias_keys = {attention_off}, .window = &gemma2_window,
     .code = gemma2_code, .logit_cap = 30.0},  // configuration_gemma2.py
    {.model_type = "gemma3_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .window = &gemma3_window, .defaults = &gemma3_defaults, .code = wide_norms},
    {.model_type = "gemma3n_text", .keys = &llama_keys, .kv_heads = 2, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .window = &gemma3n_window, .defaults = &gemma3n_defaults, .code = wide_norms,
     .logit_cap = 30.0, .details = config_details::gemma3n},  // configuration_gemma3n.py
    {.model_type = "gemma4_unified_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .window = &gemma4_window, .defaults = &gemma4_unified_defaults,
     .code = wide_norms, .details = config_details::gemma4_unified},
    {.model_type = "vaultgemma", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256, .tied = true,
     .bias_keys = {attention_off}, .window = &gemma2_window, .code = gemma2_code,
     .logit_cap = 30.0},  // configuration_vaultgemma.py
    // Phi.
    {.model_type = "phi", .keys = &llama_keys, .gated = false, .norms = one_layer_norm,
     .biases = every_bias_and_head, .code = written_out_gelu,
     .unsupported_flags = {"qk_layernorm"}},
    {.model_type = "phi-msft", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false,
     .norms = one_layer_norm, .biases = every_bias_and_head},
    {.model_type = "phi3", .keys = &llama_keys, .window = &plain_window,
     .code = fused_projections},
    // What sees and hears stands beside these keys, without an object of the language model's own.
    {.model_type = "phi4_multimodal", .keys = &llama_keys, .window = &plain_window,
     .code = fused_projections, .details = config_details::phi4_multimodal},
    {.model_type = "phi4mm", .keys = &llama_keys, .tied = true, .window = &plain_window,
     .code = fused_projections, .details = config_details::phi4_multimodal},
    // GPT-2 and its relatives.
    {.model_type = "gpt2", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false, .tied = true,
     .norms = layer_norms, .biases = every_bias, .position = learned, .code = gpt2_code},
    {.model_type = "gpt_bigcode", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = layer_norms, .biases = every_bias, .position = learned,
     .code = bigcode_code, .details = config_details::gpt_bigcode},
    {.model_type = "gpt_neo", .keys = &gpt_neo_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = layer_norms, .biases = {.o = true, .mlp = true}, .position = learned,
     .window = &gpt_neo_window, .code = written_out_gelu},
    {.model_type = "gptj", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false,
     .norms = one_layer_norm, .biases = {.mlp = true, .lm_head = true}, .code = written_out_gelu},
    {.model_type = "gpt_neox", .keys = &llama_keys, .gated = false, .norms = layer_norms,
     .biases = mlp_biases, .bias_keys = {BiasKey{"attention_bias", attention_biases, true}},
     .code = fused_qkv},
    {.model_type = "opt", .keys = &opt_keys, .gated = false, .tied = true, .norms = layer_norms,
     .bias_keys = {BiasKey{"enable_bias", every_bias, true}}, .position = learned,
     .code = relu_code, .details = config_details::opt},
    {.model_type = "bloom", .keys = &bloom_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = bloom_norms, .biases = every_bias, .position = PositionKind::alibi,
     .code = bloom_code},
    {.model_type = "falcon", .keys = &falcon_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = layer_norms, .bias_keys = {BiasKey{"bias", every_bias, false}},
     .details = config_details::falcon},
    {.model_type = "RefinedWeb", .keys = &falcon_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = layer_norms, .bias_keys = {BiasKey{"bias", every_bias, false}},
     .details = config_details::falcon},
    {.model_type = "RefinedWebModel", .keys = &falcon_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = layer_norms, .bias_keys = {BiasKey{"bias", every_bias, false}},
     .details = config_details::falcon},
    {.model_type = "mpt", .keys = &mpt_keys, .ffn_per_hidden = 4, .gated = false, .tied = true,
     .norms = bare_layer_norms, .position = learned, .code = fused_qkv,
     .details = config_details::mpt},
    // Others.
    {.model_type = "stablelm", .keys = &llama_keys, .kv_heads = 32, .norms = layer_norms,
     .bias_keys = {BiasKey{"use_qkv_bias", qkv_bias, false}}, .details = config_details::stablelm},
    {.model_type = "starcoder2", .keys = &llama_keys, .kv_heads = 2, .gated = false, .tied = true,
     .norms = layer_norms, .bias_keys = {BiasKey{"use_bias", every_bias, true}},
     .window = &plain_window},
    {.model_type = "cohere", .keys = &llama_keys, .tied = true, .norms = one_bare_layer_norm,
     .bias_keys = {attention_off}, .details = config_details::cohere},
    {.model_type = "cohere2", .keys = &llama_keys, .tied = true, .norms = one_bare_layer_norm,
     .bias_keys = {attention_off}, .window = &cohere2_window},
    {.model_type = "olmo", .keys = &llama_keys, .norms = weightless_norms,
     .bias_keys = {attention_off}},
    {.model_type = "olmo2", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::full, .code = wide_norms},
    {.model_type = "olmo3", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::full, .window = &fourth_full_window, .code = wide_norms},
    {.model_type = "nemotron", .keys = &llama_keys, .gated = false, .norms = layer_norms,
     .bias_keys = {attention_off, mlp_off}},
    {.model_type = "olmo_hybrid", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::full, .code = wide_norms, .mixes_layers = true,
     .details = config_details::olmo_hybrid},
    {.model_type = "bamba", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {attention_off, mlp_off}, .mixes_layers = true,
     .unsupported_flags = {"mamba_proj_bias"}, .details = config_details::bamba},
    {.model_type = "falcon_h1", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {attention_off, mlp_off}, .code = scaled_inputs, .mixes_layers = true,
     .unsupported_flags = {"mamba_proj_bias"}, .details = config_details::falcon_h1},
    {.model_type = "lfm2", .keys = &lfm2_keys, .kv_heads = 8, .tied = true,
     .qk_norm = QkNorm::head_dim, .mixes_layers = true, .unsupported_flags = {"conv_bias"},
     .details = config_details::lfm2},
    {.model_type = "lfm3", .keys = &llama_keys, .kv_heads = 4, .head_dim = 128, .tied = true,
     .norms = four_rms, .qk_norm = QkNorm::head_dim, .mixes_layers = true,
     .unsupported_flags = {"conv_bias", "attention_bias"}, .details = config_details::lfm3},
    {.model_type = "glm", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}},
    {.model_type = "glm4", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128,
     .norms = four_rms, .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}},
    {.model_type = "glm4v_text", .keys = &llama_keys, .kv_heads = 2, .norms = four_rms,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}},
    {.model_type = "glm_ocr_text", .keys = &llama_keys, .kv_heads = 8, .norms = four_rms},
    {.model_type = "chatglm", .keys = &chatglm_keys,
     .bias_keys = {BiasKey{"add_qkv_bias", qkv_bias, false},
                   BiasKey{"add_bias_linear", every_bias, false}},
     .details = config_details::chatglm},
});
// clang-format on

std::vector<ConfigFamily> every_family() {
  std::vector<ConfigFamily> all(dense_rows.begin(), dense_rows.end());
  const std::span<const ConfigFamily> more = expert_families();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

std::span<const ConfigFamily> config_families() {
  static const std::vector<ConfigFamily> families = every_family();
  return families;
}

const ConfigFamily* config_family(std::string_view model_type) {
  const std::span<const ConfigFamily> all = config_families();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const ConfigFamily& f) { return f.model_type == model_type; });
  return found == all.end() ? nullptr : &*found;
}

std::string_view present_key(const JsonReader& config, const KeyNames& names) {
  for (const std::string_view name : names)
    if (!name.empty() && config.has(name)) return name;
  return names.front();
}

}  // namespace shardwise
