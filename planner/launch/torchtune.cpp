// torchtune's recipe configs, read only: each part of a recipe is named by its Python path.
//
// Names and defaults: pytorch/torchtune recipes/configs/llama3_1/8B_full_single_device.yaml
// @02d7035509, 8B_lora_single_device.yaml @14857d880a. The builder of the model says its method:
// llama3_1_8b trains all weights, lora_llama3_1_8b adapters, qlora_llama3_1_8b adapters on 4 bits.
#include <utility>

#include "catalog/text_match.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace torchtune {
namespace {

constexpr std::string_view builder_key = "model._component_";

constexpr Meaning optimizers[] = {{"torch.optim.AdamW", "adamw"},
                                  {"torch.optim.SGD", "sgd"},
                                  {"bitsandbytes.optim.AdamW8bit", "adamw8bit"},
                                  {"bitsandbytes.optim.PagedAdamW", "paged-adamw"},
                                  {"bitsandbytes.optim.PagedAdamW8bit", "paged-adamw8bit"}};
constexpr Meaning linears[] = {
    {"q_proj", "q"}, {"k_proj", "k"}, {"v_proj", "v"}, {"output_proj", "o"}};
constexpr Meaning formats[] = {{"bf16", "bf16"}, {"fp32", "fp32"}};
constexpr Meaning offloaded_inputs[] = {{"true", "activations"}, {"false", ""}};
constexpr Meaning offloaded_states[] = {{"true", "params+optimizer"}, {"false", ""}};

constexpr PlanKey keys[] = {
    says_text(builder_key, "builder"),
    says_integer("model.lora_rank", "lora_rank"),
    says_member("model.lora_attn_modules.*", "target", linears),
    says_choice("model.apply_lora_to_mlp", "adapts-mlp", true_or_false),
    says_choice("model.apply_lora_to_output", "adapts-head", true_or_false),
    says_choice("model.use_dora", "dora", true_or_false),
    says_choice("model.quantize_base", "quantized-4bit", true_or_false),
    ignored("model.lora_alpha", "scales an update, costs nothing"),
    ignored("model.lora_dropout", row_says),
    says_integer("tokenizer.max_seq_len", "sequence"),
    ignored("tokenizer.*", no_step),
    says_integer("batch_size", "mbs"),
    says_integer("gradient_accumulation_steps", "ga"),
    says_choice("optimizer._component_", "optimizer", optimizers),
    says_number("optimizer.lr", "learning-rate"),
    ignored("optimizer.*", no_step),
    says_choice("optimizer_in_bwd", "steps-in-backward", true_or_false),
    says_choice("enable_activation_checkpointing", "recompute", full_or_none),
    says_choice("enable_activation_offloading", "offload", offloaded_inputs),
    says_choice("fsdp_cpu_offload", "offload", offloaded_states),
    says_choice("dtype", "precision", formats),
    ignored("dataset.packed", "sequences are taken as full ones"),
    ignored("dataset*", no_step),
    ignored("loss*", row_says),
    ignored("checkpointer*", of_saving),
    ignored("save*", of_saving),
    ignored("resume_from_checkpoint", no_step),
    ignored("lr_scheduler*", no_step),
    ignored("metric_logger*", no_step),
    ignored("log_*", no_step),
    ignored("profiler*", no_step),
    ignored("output_dir", of_saving),
    ignored("epochs", no_step),
    ignored("max_steps_per_epoch", no_step),
    ignored("clip_grad_norm", "clipping is counted as the framework does it"),
    ignored("seed", no_step),
    ignored("shuffle", no_step),
    ignored("device", no_step),
    refused("compile", "false", "compiled kernels would change time and memory"),
    refused("tensor_parallel_dim", "1", "--plan tp=N says it"),
};

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// "lora_" and "qlora_" of a builder's name; "" where it trains all weights.
std::string_view adapter_prefix(std::string_view builder) {
  for (const std::string_view prefix : {"qlora_", "lora_"})
    if (builder.starts_with(prefix)) return prefix;
  return {};
}

// "qwen2.5" of "qwen2_5", "7b-instruct" of "7b_instruct".
std::string spoken(std::string name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '_') continue;
    const bool decimal =
        i > 0 && i + 1 < name.size() && is_digit(name[i - 1]) && is_digit(name[i + 1]);
    name[i] = decimal ? '.' : '-';
  }
  return name;
}

// "llama3.1-8b" of "torchtune.models.llama3_1.lora_llama3_1_8b": what goes before is the family,
// whose name begins the builder's. "" where it does not.
std::string model_built(const std::string& component) {
  std::string builder = last_part(component);
  builder.erase(0, adapter_prefix(builder).size());
  if (builder.size() == component.size()) return {};
  std::string family = last_part(component.substr(0, component.rfind('.')));
  if (!builder.starts_with(family + '_')) return {};
  std::string size = builder.substr(family.size() + 1);
  return spoken(std::move(family)) + '-' + spoken(std::move(size));
}

std::string model_of(const ConfigEntries& entries) {
  for (const ConfigEntry& e : entries)
    if (e.path == builder_key) return model_built(config_text(e.value));
  return {};
}

void finish_adapters(PlanWords& words, const std::string& file) {
  const PlanWord builder = words.words.find("builder")->second;
  const std::string_view prefix = adapter_prefix(last_part(builder.value));
  words.say("adapter", prefix.empty() ? "false" : "true", builder.where);
  if (prefix == "qlora_") words.say("quantized-4bit", "true", builder.where);
  if (words.is("quantized-4bit", "true")) words.default_to("double-quant", "true", file);
  if (words.is("adapts-mlp", "true"))
    for (const std::string_view linear : {"gate", "up", "down"})
      words.say(sentence("target:", linear), "true", words.where("adapts-mlp"));
  if (words.is("adapts-head", "true"))
    words.say("target:lm_head", "true", words.where("adapts-head"));
  gather_targets(words, file);
  gather_method(words, file);
  if (prefix.empty()) words.imply("method", "full", file);
}

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  if (!words.has("builder"))
    return words.problems.push_back(
        {ProblemKind::file, file,
         "is torchtune's, and no model._component_ says what it trains; expected one such as "
         "torchtune.models.llama3_1.lora_llama3_1_8b"});
  const PlanWord builder = words.words.find("builder")->second;
  if (const std::string model = model_built(builder.value); !model.empty())
    words.say(named_model, model, builder.where);
  tell_other_model(words, context, builder_key);
  finish_adapters(words, file);
  words.default_to("recompute", "none", file);
  words.default_to("framework",
                   words.is("steps-in-backward", "true") ? "torchtune-low-memory" : "torchtune",
                   file);
}

}  // namespace
}  // namespace torchtune

PlanFileFormat torchtune_format() {
  return {"torchtune",
          "model._component_|tokenizer._component_|checkpointer._component_",
          "",
          3,
          torchtune::keys,
          torchtune::finish,
          torchtune::model_of,
          torchtune::builder_key};
}

}  // namespace shardwise
