// One row per `model_type` of Hugging Face's config.json: which key holds which dimension, and
// what an absent key means there. A new architecture is a new row (and, where a column cannot say
// it, a `details` function).
//
// Defaults are those of the configuration classes, biases and norms those of the modeling files:
// huggingface/transformers, src/transformers/models/<model_type>/, read at commit 6978a60aa523 of
// the ROCm fork (exaone: mlx-lm 0.32 models/exaone.py; granite, hunyuan, ernie, minicpm3 and
// glm4_moe: transformers 5.23 of PyPI); rows of models whose code lives with their weights (qwen,
// chatglm, baichuan, internlm, internlm2, orion, minicpm, mimo, phi-msft, grok-1) follow their
// published counts or are assumed.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "catalog/json_reader.hpp"
#include "catalog/transformer.hpp"

namespace shardwise {

// The names under which a value may be found; the first one present counts.
using KeyNames = std::array<std::string_view, 3>;

struct DimensionKeys {
  KeyNames hidden{"hidden_size"};
  KeyNames layers{"num_hidden_layers"};
  KeyNames heads{"num_attention_heads"};
  KeyNames kv_heads{"num_key_value_heads"};
  KeyNames head_dim{"head_dim"};
  KeyNames ffn{"intermediate_size"};
  KeyNames vocab{"vocab_size"};
  KeyNames positions{"max_position_embeddings"};
};

// A flag that switches biases on: `sets` is added where it is true.
struct BiasKey {
  std::string_view key{};
  Biases sets{};
  bool fallback = false;  // what an absent key means
};

struct ExpertKeys {
  std::string_view nested{};  // the object that holds the keys; empty: the config itself
  KeyNames experts{"num_experts", "num_local_experts"};
  KeyNames top_k{"num_experts_per_tok"};
  KeyNames width{"moe_intermediate_size"};
  std::string_view shared_width{};  // width of all shared experts together, or
  std::string_view shared_count{};  // how many there are, each as wide as a routed one
  std::string_view first_dense{};   // how many layers at the front are dense
  std::string_view every{};         // every n-th layer is MoE
  bool shared_gate = false;
  bool optional = false;       // without experts the model is dense
  bool zero_is_dense = false;  // and so it is with none of them
  std::optional<int> default_experts{};
  std::optional<int> default_top_k{};
  int default_first_dense = 0;
};

struct WindowKeys {
  std::string_view window = "sliding_window";
  std::optional<int> fallback{};  // absent key; an explicit null is always "no window"
  int every = 1;                  // as Transformer::sliding_window_every
  std::string_view every_key{};   // overrides `every`
  std::string_view switch_key{};  // the window holds only where this flag is true
  bool full_first = false;        // of so many layers the first sees everything, not the last
  bool restarts = false;          // as Transformer::window_restarts
};

// Where a key is absent; see the columns of ConfigFamily.
struct FamilyDefaults {
  std::optional<int> hidden{}, layers{}, heads{}, ffn{}, vocab{}, positions{};
};

struct ConfigFamily {
  std::string_view model_type;
  const DimensionKeys* keys;
  std::optional<int> kv_heads{};        // absent key; nothing here (and an explicit null): = heads
  std::optional<int> head_dim{};        // absent key; nothing here: hidden / heads
  std::optional<int> ffn_per_hidden{};  // ffn absent or null: this many times hidden
  bool gated = true;
  bool tied = false;
  Norms norms{};
  Biases biases{};
  std::array<BiasKey, 2> bias_keys{};
  QkNorm qk_norm = QkNorm::none;
  PositionKind position = PositionKind::rope;
  const ExpertKeys* experts = nullptr;
  const WindowKeys* window = nullptr;
  const FamilyDefaults* defaults = nullptr;
  ModelCode code{};
  double logit_cap = 0;       // final_logit_softcapping where the file says nothing; 0: none
  bool mixes_layers = false;  // layers may be no attention; `details` reads which
  // Flags that would add what is not modelled; they must be absent or false.
  std::array<std::string_view, 2> unsupported_flags{};
  // What the columns cannot say; runs last.
  void (*details)(JsonReader& config, Transformer& model) = nullptr;
};

// An architecture that is refused, by name and with the reason.
struct RefusedFamily {
  std::string_view model_type;
  std::string_view reason;
  std::string_view nearest;  // the supported model_type that resembles it most; empty: none does
};

std::span<const ConfigFamily> config_families();
std::span<const ConfigFamily> expert_families();  // a part of them: huggingface_expert_families.cpp
const ConfigFamily* config_family(std::string_view model_type);
const RefusedFamily* refused_family(std::string_view model_type);

// The first of `names` that is present, else the first name.
std::string_view present_key(const JsonReader& config, const KeyNames& names);

// The functions in the `details` column (huggingface_details.cpp).
namespace config_details {
void qwen(JsonReader& config, Transformer& model);
void falcon(JsonReader& config, Transformer& model);
void mpt(JsonReader& config, Transformer& model);
void opt(JsonReader& config, Transformer& model);
void gpt_bigcode(JsonReader& config, Transformer& model);
void stablelm(JsonReader& config, Transformer& model);
void cohere(JsonReader& config, Transformer& model);
void dbrx(JsonReader& config, Transformer& model);
void latent_attention(JsonReader& config, Transformer& model);
void sparse_attention(JsonReader& config, Transformer& model);
void llama4(JsonReader& config, Transformer& model);
void chatglm(JsonReader& config, Transformer& model);
void baichuan(JsonReader& config, Transformer& model);
void gpt_oss(JsonReader& config, Transformer& model);
void qwen3_next(JsonReader& config, Transformer& model);
void nemotron_h(JsonReader& config, Transformer& model);
void gemma3n(JsonReader& config, Transformer& model);
void gemma4(JsonReader& config, Transformer& model);
void gemma4_unified(JsonReader& config, Transformer& model);
void apertus(JsonReader& config, Transformer& model);
void minimax_m2(JsonReader& config, Transformer& model);
void minicpm3(JsonReader& config, Transformer& model);
void glm4_moe(JsonReader& config, Transformer& model);
void ernie4_5_moe(JsonReader& config, Transformer& model);
void afmoe(JsonReader& config, Transformer& model);
void bailing_moe(JsonReader& config, Transformer& model);
void hunyuan_v1_moe(JsonReader& config, Transformer& model);
void hyperclovax(JsonReader& config, Transformer& model);
void attention_sinks(JsonReader& config, Transformer& model);
void apertus1p5(JsonReader& config, Transformer& model);
void sarvam_mla(JsonReader& config, Transformer& model);
void sarvam_moe(JsonReader& config, Transformer& model);
void granitemoe_swa(JsonReader& config, Transformer& model);
void cohere2_moe(JsonReader& config, Transformer& model);
void phi4_multimodal(JsonReader& config, Transformer& model);
// (huggingface_hybrids.cpp)
void bamba(JsonReader& config, Transformer& model);
void granite_moe_hybrid(JsonReader& config, Transformer& model);
void jamba(JsonReader& config, Transformer& model);
void minimax(JsonReader& config, Transformer& model);
void falcon_h1(JsonReader& config, Transformer& model);
void lfm2(JsonReader& config, Transformer& model);
void lfm2_moe(JsonReader& config, Transformer& model);
void lfm3(JsonReader& config, Transformer& model);
void olmo_hybrid(JsonReader& config, Transformer& model);
void kimi_linear(JsonReader& config, Transformer& model);
}  // namespace config_details

}  // namespace shardwise
