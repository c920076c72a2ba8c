#include "catalog/huggingface_family.hpp"

#include <algorithm>

namespace shardwise {
namespace {

constexpr DimensionKeys llama_keys{};
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
constexpr DimensionKeys mpt_keys{
    .hidden = {"d_model", "hidden_size"},
    .layers = {"n_layers", "num_hidden_layers"},
    .heads = {"n_heads", "num_attention_heads"},
    .ffn = {"ffn_hidden_size"},  // absent in practice: expansion_ratio x d_model (details)
    .positions = {"max_seq_len"},
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

constexpr WindowKeys plain_window{};
constexpr WindowKeys mistral_window{.fallback = 4096};
constexpr WindowKeys qwen_window{.fallback = 4096, .switch_key = "use_sliding_window"};
constexpr WindowKeys gemma2_window{.fallback = 4096, .every = 2};
constexpr WindowKeys gemma3_window{
    .fallback = 4096, .every = 6, .every_key = "sliding_window_pattern"};
constexpr WindowKeys gemma4_window{.fallback = 512, .every = 6};
constexpr WindowKeys cohere2_window{
    .fallback = 4096, .every = 4, .every_key = "sliding_window_pattern"};
constexpr WindowKeys gpt_oss_window{.fallback = 128, .every = 2};
constexpr WindowKeys fourth_full_window{.fallback = 4096, .every = 4};
constexpr WindowKeys gpt_neo_window{.window = "window_size", .fallback = 256, .every = 2};

// google/gemma-3-*: text_config leaves out whatever equals the class default.
constexpr FamilyDefaults gemma3_defaults{
    .hidden = 2304, .layers = 26, .heads = 8, .ffn = 9216, .vocab = 262208, .positions = 131072};

// transformers 5.23 models/gemma4/configuration_gemma4.py, models/gemma4_unified.
constexpr FamilyDefaults gemma4_defaults{
    .hidden = 2304, .layers = 30, .heads = 8, .ffn = 9216, .vocab = 262144, .positions = 131072};
constexpr FamilyDefaults gemma4_unified_defaults{
    .hidden = 2304, .layers = 30, .heads = 8, .ffn = 9216, .vocab = 262144, .positions = 262144};

// No layer has a dense MLP, so its width is one that nothing reads.
constexpr FamilyDefaults qwen3_5_moe_defaults{.ffn = 512};

// The list of layers stands for their number in newer configs (details).
constexpr FamilyDefaults nemotron_h_defaults{.layers = 52};

constexpr Norms four_rms{.per_layer = 4};
constexpr Norms layer_norms{.kind = NormKind::layer, .bias = true};
constexpr Norms one_layer_norm{.kind = NormKind::layer, .per_layer = 1, .bias = true};
constexpr Norms bloom_norms{.kind = NormKind::layer, .bias = true, .embedding = true};
constexpr Norms bare_layer_norms{.kind = NormKind::layer};
constexpr Norms one_bare_layer_norm{.kind = NormKind::layer, .per_layer = 1};
constexpr Norms weightless_norms{.kind = NormKind::layer_no_weight};

constexpr Biases qkv_bias{.qkv = true};
constexpr Biases attention_biases{.qkv = true, .o = true};
constexpr Biases output_bias{.o = true};
constexpr Biases mlp_biases{.mlp = true};
constexpr Biases every_bias{.qkv = true, .o = true, .mlp = true};
constexpr Biases every_bias_and_head{.qkv = true, .o = true, .mlp = true, .lm_head = true};

constexpr BiasKey attention_off{"attention_bias", attention_biases, false};
constexpr BiasKey seed_qkv_on{"attention_bias", qkv_bias, true};
constexpr BiasKey seed_output_off{"attention_out_bias", output_bias, false};
constexpr BiasKey mlp_off{"mlp_bias", mlp_biases, false};
constexpr PositionKind learned = PositionKind::learned;

// transformers 5.23 of PyPI, models/<model_type>/modeling_<model_type>.py; activations.py
// (NewGELUActivation, which the configuration classes of these name).
constexpr ModelCode wide_norms{.wide_norms = true};
constexpr ModelCode gemma2_code{.wide_norms = true, .caps_scores = true};
constexpr ModelCode written_out_gelu{.mlp = MlpFunction::written_out};
constexpr ModelCode relu_code{.mlp = MlpFunction::keeps_result};
constexpr ModelCode gpt2_code{
    .mlp = MlpFunction::written_out,
    .fused_qkv = true,
    .half_softmax = true,
    .loss_ends_graph = true};  // GPT2LMHeadModel: transformers 4.57.1 modeling_utils.py, loss_type
constexpr ModelCode fused_qkv{.fused_qkv = true};
constexpr ModelCode fused_projections{.fused_qkv = true, .fused_gate_up = true};
constexpr ModelCode qwen_code{.fused_qkv = true, .flash_rotary = true};
constexpr ModelCode scaled_inputs{.scaled_inputs = true};

// Liger before 0.8.5 replaces the norms of these models' layers, not those of their heads
// (liger-kernel 0.8.4 and 0.8.5 of PyPI, transformers/monkey_patch.py).
constexpr ModelCode keeps_head_norms{.keeps_head_norms = true};
constexpr ModelCode wide_kept_norms{.wide_norms = true, .keeps_head_norms = true};

// Llama4TextMoe repeats the tokens once per expert (transformers 5.23 modeling_llama4.py).
constexpr ModelCode feeds_all_experts{.feeds_all_experts = true};

// clang-format off
constexpr auto family_rows = std::to_array<ConfigFamily>({
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
    {.model_type = "smollm3", .keys = &llama_keys, .kv_heads = 4, .tied = true,
     .bias_keys = {attention_off, mlp_off}, .window = &qwen_window},
    {.model_type = "internlm", .keys = &llama_keys,
     .bias_keys = {BiasKey{"bias", attention_biases, true}}},
    {.model_type = "internlm2", .keys = &llama_keys,
     .bias_keys = {BiasKey{"bias", attention_biases, false}}},
    {.model_type = "baichuan", .keys = &baichuan_keys, .details = config_details::baichuan},
    {.model_type = "orion", .keys = &llama_keys, .norms = layer_norms,
     .bias_keys = {attention_off}},
    {.model_type = "minicpm", .keys = &llama_keys, .tied = true, .bias_keys = {attention_off},
     .experts = &minicpm_experts},
    {.model_type = "granite", .keys = &llama_keys, .bias_keys = {attention_off, mlp_off}},
    {.model_type = "hunyuan_v1_dense", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim},
    {.model_type = "ernie4_5", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128, .tied = true,
     .unsupported_flags = {"use_bias"}},
    {.model_type = "minicpm3", .keys = &llama_keys, .tied = true,
     .unsupported_flags = {"attention_bias", "mlp_bias"}, .details = config_details::minicpm3},
    {.model_type = "mimo", .keys = &llama_keys,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}, .window = &qwen_window},
    {.model_type = "exaone", .keys = &exaone_keys, .tied = true,
     .bias_keys = {attention_off, mlp_off}},
    {.model_type = "exaone4", .keys = &llama_keys, .qk_norm = QkNorm::head_dim,
     .window = &fourth_full_window},
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
    {.model_type = "qwen2_moe", .keys = &llama_keys, .kv_heads = 16,
     .bias_keys = {BiasKey{"qkv_bias", qkv_bias, true}}, .experts = &qwen2_experts,
     .window = &qwen_window},
    {.model_type = "qwen3", .keys = &llama_keys, .kv_heads = 32, .head_dim = 128,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .window = &qwen_window,
     .code = keeps_head_norms},
    {.model_type = "qwen3_moe", .keys = &llama_keys, .kv_heads = 4, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim, .experts = &qwen3_experts, .window = &qwen_window,
     .code = keeps_head_norms},
    {.model_type = "qwen3_vl_text", .keys = &llama_keys, .kv_heads = 32, .head_dim = 128,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim},
    {.model_type = "qwen3_vl_moe_text", .keys = &llama_keys, .kv_heads = 16,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_experts},
    {.model_type = "qwen3_next", .keys = &llama_keys, .kv_heads = 2, .head_dim = 256,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_next_experts,
     .code = wide_kept_norms, .mixes_layers = true, .details = config_details::qwen3_next},
    {.model_type = "qwen3_5_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .code = wide_kept_norms,
     .mixes_layers = true, .details = config_details::qwen3_next},
    {.model_type = "qwen3_5_moe_text", .keys = &llama_keys, .kv_heads = 2, .head_dim = 256,
     .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim, .experts = &qwen3_5_experts,
     .defaults = &qwen3_5_moe_defaults, .code = wide_kept_norms, .mixes_layers = true,
     .details = config_details::qwen3_next},
    // Gemma.
    {.model_type = "gemma", .keys = &llama_keys, .kv_heads = 16, .head_dim = 256, .tied = true,
     .bias_keys = {attention_off}, .code = wide_norms},
    {.model_type = "gemma2", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256, .tied = true,
     .norms = four_rms, .bias_keys = {attention_off}, .window = &gemma2_window,
     .code = gemma2_code, .logit_cap = 30.0},  // configuration_gemma2.py
    {.model_type = "gemma3_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .window = &gemma3_window, .defaults = &gemma3_defaults, .code = wide_norms},
    {.model_type = "gemma4_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .experts = &gemma4_experts, .window = &gemma4_window, .defaults = &gemma4_defaults,
     .code = wide_norms, .details = config_details::gemma4},
    {.model_type = "gemma4_unified_text", .keys = &llama_keys, .kv_heads = 4, .head_dim = 256,
     .tied = true, .norms = four_rms, .bias_keys = {attention_off}, .qk_norm = QkNorm::head_dim,
     .window = &gemma4_window, .defaults = &gemma4_unified_defaults,
     .code = wide_norms, .details = config_details::gemma4_unified},
    // Phi.
    {.model_type = "phi", .keys = &llama_keys, .gated = false, .norms = one_layer_norm,
     .biases = every_bias_and_head, .code = written_out_gelu,
     .unsupported_flags = {"qk_layernorm"}},
    {.model_type = "phi-msft", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false,
     .norms = one_layer_norm, .biases = every_bias_and_head},
    {.model_type = "phi3", .keys = &llama_keys, .window = &plain_window,
     .code = fused_projections},
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
    {.model_type = "deepseek_v2", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "deepseek_v3", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_v3_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "kimi_k2", .keys = &llama_keys, .head_dim = 192,
     .experts = &deepseek_v3_experts,
     .unsupported_flags = {"attention_bias"}, .details = config_details::latent_attention},
    {.model_type = "dots1", .keys = &llama_keys, .bias_keys = {attention_off},
     .qk_norm = QkNorm::head_dim, .experts = &deepseek_experts},
    {.model_type = "glm4_moe", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, false}}, .experts = &glm4_experts,
     .details = config_details::glm4_moe},
    {.model_type = "ernie4_5_moe", .keys = &llama_keys, .kv_heads = 4, .tied = true,
     .experts = &ernie_experts, .unsupported_flags = {"use_bias"},
     .details = config_details::ernie4_5_moe},
    {.model_type = "llama4_text", .keys = &llama_keys, .kv_heads = 8, .head_dim = 128,
     .bias_keys = {attention_off}, .experts = &llama4_experts, .code = feeds_all_experts,
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
    {.model_type = "grok-1", .keys = &llama_keys, .tied = true, .norms = four_rms,
     .experts = &grok_experts},
    // GPT-2 and its relatives.
    {.model_type = "gpt2", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false, .tied = true,
     .norms = layer_norms, .biases = every_bias, .position = learned, .code = gpt2_code},
    {.model_type = "gpt_bigcode", .keys = &gpt2_keys, .ffn_per_hidden = 4, .gated = false,
     .tied = true, .norms = layer_norms, .biases = every_bias, .position = learned,
     .code = fused_qkv, .details = config_details::gpt_bigcode},
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
     .code = fused_qkv},
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
    {.model_type = "nemotron_h", .keys = &nemotron_h_keys, .head_dim = 128, .gated = false,
     .norms = {.per_layer = 1}, .bias_keys = {attention_off, mlp_off},
     .position = PositionKind::none, .experts = &nemotron_h_experts,
     .defaults = &nemotron_h_defaults, .unsupported_flags = {"use_bias", "mamba_proj_bias"},
     .details = config_details::nemotron_h},
    {.model_type = "bamba", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {attention_off, mlp_off}, .mixes_layers = true,
     .unsupported_flags = {"mamba_proj_bias"}, .details = config_details::bamba},
    {.model_type = "granitemoehybrid", .keys = &llama_keys, .bias_keys = {attention_off},
     .experts = &granite_hybrid_experts, .mixes_layers = true,
     .unsupported_flags = {"mamba_proj_bias"}, .details = config_details::granite_moe_hybrid},
    {.model_type = "falcon_h1", .keys = &llama_keys, .kv_heads = 8,
     .bias_keys = {attention_off, mlp_off}, .code = scaled_inputs, .mixes_layers = true,
     .unsupported_flags = {"mamba_proj_bias"}, .details = config_details::falcon_h1},
    {.model_type = "lfm2", .keys = &lfm2_keys, .kv_heads = 8, .tied = true,
     .qk_norm = QkNorm::head_dim, .mixes_layers = true, .unsupported_flags = {"conv_bias"},
     .details = config_details::lfm2},
    {.model_type = "lfm2_moe", .keys = &llama_keys, .kv_heads = 8, .tied = true,
     .qk_norm = QkNorm::head_dim, .experts = &lfm2_experts, .mixes_layers = true,
     .unsupported_flags = {"conv_bias"}, .details = config_details::lfm2_moe},
    {.model_type = "glm", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128,
     .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}},
    {.model_type = "glm4", .keys = &llama_keys, .kv_heads = 2, .head_dim = 128,
     .norms = four_rms, .bias_keys = {BiasKey{"attention_bias", qkv_bias, true}}},
    {.model_type = "chatglm", .keys = &chatglm_keys,
     .bias_keys = {BiasKey{"add_qkv_bias", qkv_bias, false},
                   BiasKey{"add_bias_linear", every_bias, false}},
     .details = config_details::chatglm},
});
// clang-format on

}  // namespace

std::span<const ConfigFamily> config_families() { return family_rows; }

const ConfigFamily* config_family(std::string_view model_type) {
  const auto* found =
      std::find_if(family_rows.begin(), family_rows.end(),
                   [&](const ConfigFamily& f) { return f.model_type == model_type; });
  return found == family_rows.end() ? nullptr : found;
}

std::string_view present_key(const JsonReader& config, const KeyNames& names) {
  for (const std::string_view name : names)
    if (!name.empty() && config.has(name)) return name;
  return names.front();
}

}  // namespace shardwise
