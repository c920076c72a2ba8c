// What the columns of a row cannot say of newer families with experts (transformers 5.24 of PyPI,
// models/<model_type>/configuration_<model_type>.py).
#include <string>

#include "catalog/huggingface_family.hpp"
#include "catalog/transformer_flaws.hpp"

namespace shardwise::config_details {
namespace {

// Sarvam's own files and those that transformers writes name the number of shared experts
// differently; one where neither does.
void one_shared_expert(JsonReader& config, Transformer& model) {
  if (!model.moe) return;
  const KeyNames names{"n_shared_experts", "num_shared_experts"};
  const int count = config.maybe_integer(present_key(config, names), 0, 1000).value_or(1);
  model.moe->shared_expert_ffn = count * model.moe->expert_ffn;
}

}  // namespace

void sarvam_mla(JsonReader& config, Transformer& model) {
  latent_attention(config, model);
  one_shared_expert(config, model);
}

void sarvam_moe(JsonReader& config, Transformer& model) {
  model.qk_norm = config.maybe_flag("use_qk_norm").value_or(true) ? QkNorm::head_dim : QkNorm::none;
  one_shared_expert(config, model);
}

void granitemoe_swa(JsonReader& config, Transformer& model) {
  attention_sinks(config, model);
  if (model.moe)
    model.moe->shared_expert_ffn =
        config.maybe_integer("shared_intermediate_size", 0, most_width).value_or(0);
}

// Dense layers at the front have a width of their own, and windows that only a list tells.
void cohere2_moe(JsonReader& config, Transformer& model) {
  if (config.has("rms_norm_eps")) model.norms = {.per_layer = 1};
  if (!model.moe || model.moe->dense_layers == 0) return;
  model.ffn = config.integer("prefix_dense_intermediate_size", 1, most_width);
  if (config.texts("layer_types").empty())
    config.problem("layer_types", "a name for each layer, where dense layers stand at the front");
}

}  // namespace shardwise::config_details
