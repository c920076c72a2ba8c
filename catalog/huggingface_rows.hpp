// What the rows of both tables of families share (huggingface_family.cpp,
// huggingface_expert_families.cpp).
#pragma once

#include "catalog/huggingface_family.hpp"

namespace shardwise::family_columns {

inline constexpr DimensionKeys llama_keys{};
inline constexpr DimensionKeys mpt_keys{
    .hidden = {"d_model", "hidden_size"},
    .layers = {"n_layers", "num_hidden_layers"},
    .heads = {"n_heads", "num_attention_heads"},
    .ffn = {"ffn_hidden_size"},  // absent in practice: expansion_ratio x d_model (details)
    .positions = {"max_seq_len"},
};
inline constexpr WindowKeys plain_window{};
inline constexpr WindowKeys qwen_window{.fallback = 4096, .switch_key = "use_sliding_window"};
inline constexpr WindowKeys gemma4_window{.fallback = 512, .every = 6};
inline constexpr WindowKeys fourth_full_window{.fallback = 4096, .every = 4};
inline constexpr Norms four_rms{.per_layer = 4};
inline constexpr Norms layer_norms{.kind = NormKind::layer, .bias = true};
inline constexpr Norms bare_layer_norms{.kind = NormKind::layer};
inline constexpr Biases qkv_bias{.qkv = true};
inline constexpr Biases attention_biases{.qkv = true, .o = true};
inline constexpr Biases mlp_biases{.mlp = true};
inline constexpr BiasKey attention_off{"attention_bias", attention_biases, false};
inline constexpr BiasKey mlp_off{"mlp_bias", mlp_biases, false};

// transformers 5.23 of PyPI, models/<model_type>/modeling_<model_type>.py.
inline constexpr ModelCode fused_qkv{.fused_qkv = true};
inline constexpr ModelCode wide_norms{.wide_norms = true};

// Liger before 0.8.5 replaces the norms of these models' layers, not those of their heads
// (liger-kernel 0.8.4 and 0.8.5 of PyPI, transformers/monkey_patch.py).
inline constexpr ModelCode keeps_head_norms{.keeps_head_norms = true};
inline constexpr ModelCode wide_kept_norms{.wide_norms = true, .keeps_head_norms = true};

}  // namespace shardwise::family_columns
