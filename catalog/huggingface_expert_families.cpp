// Families with experts, or which may have some.
#include "catalog/huggingface_family.hpp"
#include "catalog/huggingface_rows.hpp"

namespace shardwise {
namespace expert_families_rows {

using namespace family_columns;

constexpr DimensionKeys nemotron_h_keys{.head_dim = {"head_dim", "attention_head_dim"}};
constexpr ExpertKeys mixtral_experts{
    .experts = {"num_local_experts", "num_experts"},
    .width = {"intermediate_size"},
    .default_experts = 8,
    .default_top_k = 2,
};
constexpr ExpertKeys phimoe_experts{
    .experts = {"num_local_experts", "num_experts"},
    .width = {"intermediate_size"},
    .default_experts = 16,
    .default_top_k = 2,
};
constexpr ExpertKeys minicpm_experts{.width = {"intermediate_size"}, .optional = true};
constexpr ExpertKeys qwen2_experts{
    .shared_width = "shared_expert_intermediate_size",
    .every = "decoder_sparse_step",
    .shared_gate = true,
};
constexpr ExpertKeys qwen3_experts{.every = "decoder_sparse_step"};
constexpr ExpertKeys qwen3_next_experts{
    .shared_width = "shared_expert_intermediate_size",
    .every = "decoder_sparse_step",
    .shared_gate = true,
};
constexpr ExpertKeys qwen3_5_experts{
    .shared_width = "shared_expert_intermediate_size",
    .shared_gate = true,
    .default_experts = 256,
    .default_top_k = 8,
};
constexpr ExpertKeys olmoe_experts{
    .width = {"intermediate_size"},
    .default_experts = 64,
    .default_top_k = 8,
};
constexpr ExpertKeys gpt_oss_experts{
    .experts = {"num_local_experts", "num_experts"},
    .top_k = {"num_experts_per_tok", "experts_per_token"},
    .width = {"intermediate_size"},
};
constexpr ExpertKeys dbrx_experts{
    .nested = "ffn_config",
    .experts = {"moe_num_experts"},
    .top_k = {"moe_top_k"},
    .width = {"ffn_hidden_size"},
};
constexpr ExpertKeys deepseek_experts{
    .experts = {"n_routed_experts"},
    .shared_count = "n_shared_experts",
    .first_dense = "first_k_dense_replace",
    .optional = true,
};
constexpr ExpertKeys deepseek_v3_experts{
    .experts = {"n_routed_experts"},
    .shared_count = "n_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 256,
    .default_top_k = 8,
    .default_first_dense = 3,
};
constexpr ExpertKeys glm4_experts{
    .experts = {"n_routed_experts"},
    .shared_count = "n_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 128,
    .default_top_k = 8,
    .default_first_dense = 1,
};
constexpr ExpertKeys ernie_experts{
    .experts = {"moe_num_experts"},
    .top_k = {"moe_k"},
    .shared_count = "moe_num_shared_experts",
    .first_dense = "moe_layer_start_index",
    .default_experts = 64,
    .default_top_k = 6,
    .default_first_dense = 1,
};
constexpr ExpertKeys llama4_experts{
    .experts = {"num_local_experts"},
    .width = {"intermediate_size"},
    .shared_width = "intermediate_size",
    .every = "interleave_moe_layer_step",
    .default_experts = 16,
    .default_top_k = 1,
};
// Attention is chunked but in every 4th layer, which has no rotary positions (no_rope_layers).
constexpr WindowKeys llama4_window{
    .window = "attention_chunk_size", .fallback = 8192, .every = 4, .restarts = true};
constexpr ExpertKeys nemotron_h_experts{
    .experts = {"n_routed_experts"},
    .shared_width = "moe_shared_expert_intermediate_size",
    .first_dense = "first_k_dense_replace",
    .optional = true,
};
constexpr ExpertKeys granite_hybrid_experts{
    .experts = {"num_local_experts"},
    .width = {"intermediate_size"},
    .shared_width = "shared_intermediate_size",
    .zero_is_dense = true,
    .default_experts = 8,
    .default_top_k = 2,
};
constexpr ExpertKeys sarvam_experts{
    .experts = {"n_routed_experts", "num_experts"},
    .first_dense = "first_k_dense_replace",
    .default_experts = 128,
    .default_top_k = 8,
    .default_first_dense = 1,
};
constexpr ExpertKeys sarvam_moe_experts = [] {
  ExpertKeys keys = sarvam_experts;
  keys.default_top_k = 6;
  return keys;
}();
constexpr ExpertKeys kolibri_experts{
    .shared_width = "shared_expert_intermediate_size",
    .default_experts = 384,
    .default_top_k = 6,
};
constexpr WindowKeys kolibri_window{.fallback = 513, .every = 5};
constexpr WindowKeys granite_moe_window{.fallback = 128, .every = 4, .full_first = true};
constexpr ExpertKeys cohere2_moe_experts{
    .width = {"intermediate_size"},
    .shared_count = "num_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 8,
    .default_top_k = 2,
};
constexpr WindowKeys cohere2_moe_window{
    .fallback = 4096, .every = 4, .every_key = "sliding_window_pattern"};
constexpr Norms one_layer_norm_without_bias{.kind = NormKind::layer, .per_layer = 1};
constexpr ExpertKeys jamba_experts{
    .experts = {"num_experts", "num_local_experts"},
    .width = {"intermediate_size"},
    .every = "expert_layer_period",
    .default_experts = 16,
    .default_top_k = 2,
};
constexpr ExpertKeys lfm2_experts{
    .first_dense = "num_dense_layers",
    .default_experts = 32,
    .default_top_k = 4,
    .default_first_dense = 2,
};
constexpr ExpertKeys gemma4_experts{.top_k = {"top_k_experts"}, .optional = true};
constexpr ExpertKeys grok_experts{
    .top_k = {"num_experts_per_tok", "num_selected_experts"},
    .width = {"intermediate_size"},
};
constexpr WindowKeys gpt_oss_window{.fallback = 128, .every = 2};

// transformers 5.23 models/gemma4/configuration_gemma4.py, models/gemma4_unified.
constexpr FamilyDefaults gemma4_defaults{
    .hidden = 2304, .layers = 30, .heads = 8, .ffn = 9216, .vocab = 262144, .positions = 131072};

// No layer has a dense MLP, so its width is one that nothing reads.
constexpr FamilyDefaults qwen3_5_moe_defaults{.ffn = 512};

// The list of layers stands for their number in newer configs (details).
constexpr FamilyDefaults nemotron_h_defaults{.layers = 52};

// Llama4TextMoe repeats the tokens once per expert (transformers 5.23 modeling_llama4.py).
constexpr ModelCode feeds_all_experts{.feeds_all_experts = true};

// GraniteMoe and its kin: hidden_states * self.residual_multiplier; the Hub's modeling_minicpm.py:
// hidden_states * (self.scale_depth / math.sqrt(self.num_hidden_layers)).
constexpr ModelCode scaled_expert_branches{.scales_branches = true};

constexpr ExpertKeys granite_shared_experts{
    .experts = {"num_local_experts"},
    .width = {"intermediate_size"},
    .shared_width = "shared_intermediate_size",
    .default_experts = 8,
    .default_top_k = 2,
};
constexpr ExpertKeys glm4_lite_experts{
    .experts = {"n_routed_experts"},
    .shared_count = "n_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 64,
    .default_top_k = 4,
    .default_first_dense = 1,
};
constexpr ExpertKeys mistral4_experts{
    .experts = {"n_routed_experts"},
    .shared_count = "n_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 128,
    .default_top_k = 4,
};
constexpr ExpertKeys kimi_linear_experts{
    .experts = {"num_experts", "num_local_experts"},
    .top_k = {"num_experts_per_token", "num_experts_per_tok"},
    .shared_count = "num_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 256,
    .default_top_k = 8,
    .default_first_dense = 1,
};
constexpr ExpertKeys solar_experts{
    .experts = {"n_routed_experts"},
    .shared_count = "n_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 128,
    .default_top_k = 8,
};
constexpr ExpertKeys exaone_experts{
    .shared_count = "num_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 64,
    .default_top_k = 8,
    .default_first_dense = 1,
};
constexpr ExpertKeys hunyuan3_experts{
    .shared_count = "num_shared_experts",
    .first_dense = "first_k_dense_replace",
    .default_experts = 192,
    .default_top_k = 8,
    .default_first_dense = 1,
};
constexpr ExpertKeys hunyuan_experts{
    .experts = {"num_experts", "num_local_experts"},
    .top_k = {"moe_topk", "num_experts_per_tok"},
    .width = {"moe_intermediate_size", "intermediate_size"},
    .shared_count = "num_shared_expert",
    .default_experts = 1,
    .default_top_k = 1,
};
constexpr ExpertKeys afmoe_experts{
    .shared_count = "num_shared_experts",
    .first_dense = "num_dense_layers",
    .default_experts = 64,
    .default_top_k = 6,
    .default_first_dense = 1,
};
constexpr ExpertKeys bailing_experts{
    .shared_count = "num_shared_experts",
    .first_dense = "first_k_dense_replace",
};
constexpr ExpertKeys mellum_experts{
    .experts = {"num_experts", "num_local_experts"},
    .default_experts = 64,
    .default_top_k = 8,
};
constexpr ExpertKeys flex_olmo_experts{
    .width = {"intermediate_size"},
    .default_experts = 7,
    .default_top_k = 5,
};
constexpr WindowKeys afmoe_window{
    .fallback = 1024, .every = 4, .every_key = "global_attn_every_n_layers"};

// No layer has a dense MLP, and files that transformers writes leave its width out
// (modular_solar_open.py), so it is one that nothing reads.
constexpr FamilyDefaults solar_defaults{.ffn = 1280};

// Queries and gate are two projections (transformers 5.23 models/afmoe/modeling_afmoe.py,
// AfmoeAttention).
constexpr ModelCode gate_apart{.gate_apart = true};

// clang-format off
constexpr auto rows = std::to_array<ConfigFamily>({
    {.model_type = "minicpm", .keys = &llama_keys, .tied = true, .bias_keys = {attention_off},
     .experts = &minicpm_experts, .code = scaled_expert_branches},
    {.model_type = "qwen2_moe", .keys = &llama_keys, .kv_heads = 16,
     .bias_keys = {BiasKey{"qkv_bias", qkv_bias, true}}, .experts = &qwen2_experts,
     .window = &qwen_window},
    {.model_type = "qwen3_moe", .keys = &llama_keys, .kv_heads = 4, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim, .experts = &qwen3_experts, .window = &qwen_window,
     .code = keeps_head_norms},
    {.model_type = "qwen3_vl_moe_text", .keys = &llama_keys, .kv_heads = 16,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_experts},
    {.model_type = "qwen3_next", .keys = &llama_keys, .kv_heads = 2, .head_dim = 256,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_next_experts,
     .code = wide_kept_norms, .mixes_layers = true, .details = config_details::qwen3_next},
    {.model_type = "qwen3_5_moe_text", .keys = &llama_keys, .kv_heads = 2, .head_dim = 256,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_5_experts,
     .defaults = &qwen3_5_moe_defaults, .code = wide_kept_norms, .mixes_layers = true,
     .details = config_details::qwen3_next},
    {.model_type = "gemma4_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .experts = &gemma4_experts, .window = &gemma4_window, .defaults = &gemma4_defaults,
     .code = wide_norms, .details = config_details::gemma4},
    {.model_type = "phimoe", .keys = &llama_keys, .kv_heads = 8, .norms = layer_norms,
     .bias_keys = {attention_off, BiasKey{"lm_head_bias", {.lm_head = true}, false}},
     .experts = &phimoe_experts, .window = &plain_window},
    // Mixtures of experts.
    {.model_type = "mixtral", .keys = &llama_keys, .kv_heads = 8, .experts = &mixtral_experts,
     .window = &plain_window},
    {.model_type = "dbrx", .keys = &mpt_keys, .norms = bare_layer_norms,
     .experts = &dbrx_experts, .details = config_details::dbrx},
    {.model_type = "deepseek", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &deepseek_experts},
    {.model_type = "deepseek_ocr2_text", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &deepseek_experts},
    {.model_type = "unlimited_ocr_text", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &deepseek_experts},
    {.model_type = "deepseek_v2", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "deepseek_v3", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_v3_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "deepseek_v32", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_v3_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::sparse_attention},
    {.model_type = "glm_moe_dsa", .keys = &llama_keys, .head_dim = 256,
     .experts = &deepseek_v3_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::sparse_attention},
    {.model_type = "kimi_k2", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_v3_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "kimi_linear", .keys = &llama_keys, .head_dim = 192,
     .experts = &kimi_linear_experts, .mixes_layers = true,
     .unsupported_flags = {"attention_bias"}, .details = config_details::kimi_linear},
    {.model_type = "dots1", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim, .experts = &deepseek_experts},
    {.model_type = "glm4_moe", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, false}}, .experts = &glm4_experts,
     .details = config_details::glm4_moe},
    {.model_type = "ernie4_5_moe", .keys = &llama_keys, .kv_heads = 4, .tied = true,
     .experts = &ernie_experts, .unsupported_flags = {"use_bias"},
     .details = config_details::ernie4_5_moe},
    {.model_type = "llama4_text", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {attention_off}, .experts = &llama4_experts, .window = &llama4_window,
     .code = feeds_all_experts,
     .details = config_details::llama4},
    {.model_type = "gpt_oss", .keys = &llama_keys, .kv_heads = 8, .head_dim = 64,
     .biases = {.experts = true, .router = true},
     .bias_keys = {BiasKey{"attention_bias", attention_biases, true}},
     .experts = &gpt_oss_experts, .window = &gpt_oss_window, .code = wide_norms,
     .details = config_details::gpt_oss},
    {.model_type = "olmoe", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::full, .experts = &olmoe_experts},
    {.model_type = "minimax_m2", .keys = &llama_keys, .kv_heads = 8,
     .experts = &mixtral_experts, .details = config_details::minimax_m2},
    {.model_type = "granitemoe", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &mixtral_experts, .code = scaled_expert_branches},
    {.model_type = "granitemoeshared", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &granite_shared_experts, .code = scaled_expert_branches},
    {.model_type = "glm4_moe_lite", .keys = &llama_keys, .head_dim = 256,
     .experts = &glm4_lite_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "glm4v_moe_text", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}, .experts = &glm4_experts},
    {.model_type = "mistral4", .keys = &llama_keys, .experts = &mistral4_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "solar_open", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {attention_off}, .experts = &solar_experts, .defaults = &solar_defaults},
    {.model_type = "exaone_moe", .keys = &llama_keys, .qk_norm = QkNorm::head_dim,
     .experts = &exaone_experts, .window = &fourth_full_window},
    {.model_type = "hy_v3", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {attention_off, mlp_off}, .qk_norm = QkNorm::head_dim,
     .experts = &hunyuan3_experts},
    {.model_type = "hunyuan_v1_moe", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim, .experts = &hunyuan_experts,
     .details = config_details::hunyuan_v1_moe},
    {.model_type = "afmoe", .keys = &llama_keys, .head_dim = 128, .norms = four_rms,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &afmoe_experts,
     .window = &afmoe_window, .code = gate_apart, .details = config_details::afmoe},
    {.model_type = "mellum", .keys = &llama_keys, .kv_heads = 4, .head_dim = 128,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &mellum_experts,
     .window = &plain_window},
    // Ling: NVIDIA-NeMo/Megatron-Bridge @067f987df0 src/megatron/bridge/models/bailing; its files
    // say "bailing_moe", as those of the generation before, which has no norms of heads.
    {.model_type = "bailing_moe", .keys = &llama_keys,
     .bias_keys = {BiasKey{"use_qkv_bias", qkv_bias, false},
                   BiasKey{"use_bias", {.o = true}, false}},
     .experts = &bailing_experts, .code = fused_qkv, .details = config_details::bailing_moe},
    {.model_type = "bailing_moe_v2", .keys = &llama_keys, .kv_heads = 4, .head_dim = 128,
     .bias_keys = {BiasKey{"use_qkv_bias", qkv_bias, false},
                   BiasKey{"use_bias", {.o = true}, false}},
     .qk_norm = QkNorm::head_dim, .experts = &bailing_experts, .code = fused_qkv,
     .details = config_details::bailing_moe},
    {.model_type = "flex_olmo", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::full, .experts = &flex_olmo_experts, .code = wide_norms},
    {.model_type = "qwen3_omni_moe_text", .keys = &llama_keys, .kv_heads = 4,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_experts,
     .code = keeps_head_norms},
    {.model_type = "grok-1", .keys = &llama_keys, .tied = true, .norms = four_rms,
     .experts = &grok_experts},
    {.model_type = "nemotron_h", .keys = &nemotron_h_keys, .head_dim = 128, .gated = false,
     .norms = {.per_layer = 1}, .bias_keys = {attention_off, mlp_off},
     .position = PositionKind::none, .experts = &nemotron_h_experts,
     .defaults = &nemotron_h_defaults, .unsupported_flags = {"use_bias", "mamba_proj_bias"},
     .details = config_details::nemotron_h},
    {.model_type = "granitemoehybrid", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &granite_hybrid_experts, .code = scaled_expert_branches, .mixes_layers = true,
     .unsupported_flags = {"mamba_proj_bias"}, .details = config_details::granite_moe_hybrid},
    {.model_type = "sarvam_mla", .keys = &llama_keys, .head_dim = 192, .experts = &sarvam_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::sarvam_mla},
    {.model_type = "sarvam_moe", .keys = &llama_keys, .kv_heads = 4, .head_dim = 64,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, false},
                   BiasKey{"use_qkv_bias", qkv_bias, false}},
     .experts = &sarvam_moe_experts, .details = config_details::sarvam_moe},
    {.model_type = "kolibri1", .keys = &llama_keys, .kv_heads = 4, .head_dim = 128,
     .norms = four_rms, .qk_norm = QkNorm::head_dim, .experts = &kolibri_experts,
     .window = &kolibri_window},
    {.model_type = "granitemoe_swa", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &mixtral_experts, .window = &granite_moe_window,
     .code = scaled_expert_branches,
     .details = config_details::granitemoe_swa},
    {.model_type = "cohere2_moe", .keys = &llama_keys, .head_dim = 128, .tied = true,
     .norms = one_layer_norm_without_bias, .bias_keys = {attention_off},
     .experts = &cohere2_moe_experts, .window = &cohere2_moe_window,
     .details = config_details::cohere2_moe},
    {.model_type = "jamba", .keys = &llama_keys, .kv_heads = 8, .position = PositionKind::none,
     .experts = &jamba_experts, .mixes_layers = true, .unsupported_flags = {"mamba_proj_bias"},
     .details = config_details::jamba},
    {.model_type = "minimax", .keys = &llama_keys, .kv_heads = 8, .norms = {.feed_residual = true},
     .experts = &mixtral_experts, .mixes_layers = true, .details = config_details::minimax},
    {.model_type = "minimax_text_01", .keys = &llama_keys, .kv_heads = 8,
     .norms = {.feed_residual = true}, .experts = &mixtral_experts, .mixes_layers = true,
     .details = config_details::minimax},
    {.model_type = "minimax_m1", .keys = &llama_keys, .kv_heads = 8,
     .norms = {.feed_residual = true}, .experts = &mixtral_experts, .mixes_layers = true,
     .details = config_details::minimax},
    {.model_type = "lfm2_moe", .keys = &llama_keys, .kv_heads = 8, .tied = true,
     .qk_norm = QkNorm::head_dim, .experts = &lfm2_experts, .mixes_layers = true,
     .unsupported_flags = {"conv_bias"}, .details = config_details::lfm2_moe},
});
// clang-format on

}  // namespace expert_families_rows

std::span<const ConfigFamily> expert_families() { return expert_families_rows::rows; }

}  // namespace shardwise
