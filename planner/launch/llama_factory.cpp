// LLaMA-Factory's YAML, read only: the Trainer's arguments, and its own of model, method and data.
//
// Names and defaults: hiyouga/LLaMA-Factory @ff6d4d12ee src/llamafactory/hparams/*.py. Adapters and
// gradient checkpointing are on unless a file says otherwise, and 4-bit weights quantised twice.
#include <algorithm>

#include "planner/launch/formats.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace llama_factory {
namespace {

constexpr Meaning tunings[] = {{"lora", "true"}, {"full", "false"}};
constexpr Meaning bits[] = {{"4", "4"}, {"8", "8"}};
constexpr Meaning methods[] = {{"bnb", ""}, {"bitsandbytes", ""}};
constexpr Meaning checkpointing_off[] = {{"true", "none"}, {"false", "full"}};
constexpr Meaning stages[] = {
    {"pt", ""}, {"sft", ""}, {"dpo", "dpo"}, {"kto", "kto"}, {"rm", "reward"}};
constexpr Meaning losses[] = {
    {"sigmoid", "dpo"}, {"hinge", "dpo"}, {"ipo", "dpo"}, {"orpo", "orpo"}, {"simpo", "simpo"}};

constexpr std::string_view own_kernels = "other kernels would change time and memory";

constexpr PlanKey keys[] = {
    says_choice("stage", "stage", stages),
    // What only files of its v1 trainer have (src/llamafactory/v1/config).
    says_text("model_class", "v1-trainer"),
    says_text("dist_config.name", "v1-trainer-shards"),
    says_text("train_dataset", "v1-trainer-data"),
    says_choice("finetuning_type", "adapter", tunings),
    says_integer("lora_rank", "lora_rank"),
    says_linears("lora_target*"),
    says_choice("use_dora", "dora", true_or_false),
    says_choice("quantization_bit", "quantization-bits", bits),
    says_choice("quantization_method", "quantizer", methods),
    says_choice("double_quantization", "double-quant", true_or_false),
    says_choice("pref_loss", "pref-loss", losses),
    says_integer("cutoff_len", "sequence"),
    says_integer("per_device_train_batch_size", "mbs"),
    says_integer("gradient_accumulation_steps", "ga"),
    says_choice("disable_gradient_checkpointing", "recompute", checkpointing_off),
    says_choice("optim", "optimizer", hugging_face_optimizers),
    says_choice("bf16", "precision", bf16_or_not),
    says_choice("fp16", "precision", fp16_or_not),
    says_number("learning_rate", "learning-rate"),
    names_model("model_name_or_path", named_model),
    ignored("lora_alpha", "scales an update, costs nothing"),
    ignored("lora_dropout", row_says),
    ignored("deepspeed", "its file is read where found, or as another --plan-from"),
    ignored("flash_attn", "the framework's row says which kernel"),
    ignored("packing", "sequences are taken as full ones"),
    ignored("neat_packing", "sequences are taken as full ones"),
    ignored("template", no_step),
    ignored("dataset*", no_step),
    ignored("max_samples", no_step),
    ignored("preprocessing_*", no_step),
    ignored("overwrite_*", no_step),
    ignored("dataloader*", "loading is taken as fast enough"),
    ignored("output_dir", no_step),
    ignored("trust_remote_code", no_step),
    ignored("logging*", no_step),
    ignored("save*", no_step),
    ignored("plot_loss", no_step),
    ignored("report_to*", no_step),
    ignored("run_name", no_step),
    ignored("num_train_epochs", no_step),
    ignored("max_steps", no_step),
    ignored("lr_scheduler*", no_step),
    ignored("warmup*", no_step),
    ignored("weight_decay", no_step),
    ignored("adam_*", no_step),
    ignored("max_grad_norm", "clipping is counted as the framework does it"),
    ignored("pref_beta", no_step),
    ignored("seed", no_step),
    ignored("ddp_timeout", no_step),
    ignored("resume_from_checkpoint", no_step),
    ignored("val_size", of_evaluation),
    ignored("per_device_eval_batch_size", of_evaluation),
    ignored("eval*", of_evaluation),
    ignored("do_*", of_evaluation),
    refused("freeze_vision_tower", "true", "training the vision tower is not modelled"),
    refused("freeze_multi_modal_projector", "true", "training the projector is not modelled"),
    refused("use_unsloth", "false", own_kernels),
    refused("enable_liger_kernel", "false", own_kernels),
    refused("pure_bf16", "false", "weights and states of 16 bits alone are not modelled there"),
};

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  tell_other_model(words, context, "model_name_or_path");
  for (const std::string_view word : {"v1-trainer", "v1-trainer-shards", "v1-trainer-data"})
    if (words.has(word))
      return words.wrong(word,
                         "is of LLaMA-Factory's v1 trainer, whose files are not read; expected "
                         "finetuning_type, per_device_train_batch_size and the like");
  words.default_to("adapter", "true", file);
  if (words.has("quantization-bits")) {
    const PlanWord width = words.words.find("quantization-bits")->second;
    words.say(sentence("quantized-", width.value, "bit"), "true", width.where);
    words.default_to("double-quant", "true", file);
  }
  if (words.is("stage", "dpo"))
    words.default_to("preference",
                     words.has("pref-loss") ? words.words.find("pref-loss")->second.value : "dpo",
                     words.where("stage"));
  else if (words.has("stage"))
    words.default_to("preference", words.words.find("stage")->second.value, words.where("stage"));
  gather_targets(words, file);
  gather_method(words, file);
  if (words.is("adapter", "false")) words.imply("method", "full", file);
  words.default_to("recompute", "full", file);
  words.imply("sequence", "2048", file);
  words.default_to("framework", words.has("zero") ? "llama-factory-deepspeed" : "llama-factory",
                   file);
}

}  // namespace
}  // namespace llama_factory

PlanFileFormat llama_factory_format() {
  return {"LLaMA-Factory",
          "finetuning_type|cutoff_len|lora_target|quantization_bit",
          "",
          3,
          llama_factory::keys,
          llama_factory::finish};
}

}  // namespace shardwise
