// ms-swift's arguments (swift sft, pt, rlhf), read only: the Trainer's, and its own of tuner,
// weights and data.
//
// Names and defaults: modelscope/ms-swift swift/arguments/tuner_args.py @0bb3103b3b,
// sft_args.py @00e9ca8652, base_args/{base_args.py @03b920b7cf,quant_args.py @15898feefa},
// swift/trainers/arguments.py @0037257ce8; what --deepspeed names: swift/config/*.json @b228e40f11.
// Adapters, beside every linear, and gradient checkpointing are on unless the arguments say
// otherwise, and 4-bit weights are quantised twice. tuner_type is called train_type before version
// 4, sft_type before 3, whose linears are those of the framework's row.
#include "planner/launch/formats.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace ms_swift {
namespace {

constexpr Meaning tuners[] = {{"lora", "true"}, {"full", "false"}};
constexpr Meaning bits[] = {{"4", "4"}, {"8", "8"}};
constexpr Meaning quantizers[] = {{"bnb", ""}};
constexpr Meaning nf4[] = {{"nf4", ""}};
constexpr Meaning formats[] = {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}};
constexpr Meaning preferences[] = {
    {"dpo", "dpo"}, {"kto", "kto"}, {"orpo", "orpo"}, {"simpo", "simpo"}, {"rm", "reward"}};

constexpr PlanKey keys[] = {
    says_choice("tuner_type", "adapter", tuners),
    says_choice("train_type", "adapter", tuners),
    says_choice("sft_type", "adapter", tuners),
    says_integer("lora_rank", "lora_rank"),
    says_linears("target_modules*"),
    says_choice("use_dora", "dora", true_or_false),
    says_choice("quant_method", "quantizer", quantizers),
    says_choice("quant_bits", "quantization-bits", bits),
    says_choice("bnb_4bit_quant_type", "4bit-type", nf4),
    says_choice("bnb_4bit_use_double_quant", "double-quant", true_or_false),
    says_choice("rlhf_type", "preference", preferences),
    says_integer("max_length", "sequence"),
    says_integer("per_device_train_batch_size", "mbs"),
    says_integer("gradient_accumulation_steps", "ga"),
    says_choice("gradient_checkpointing", "recompute", full_or_none),
    says_choice("optim", "optimizer", hugging_face_optimizers),
    says_choice("torch_dtype", "precision", formats),
    says_choice("bf16", "precision", bf16_or_not),
    says_choice("fp16", "precision", fp16_or_not),
    says_number("learning_rate", "learning-rate"),
    says_text("deepspeed", "swift-deepspeed"),
    names_model("model", named_model),
    ignored("model_type", of_model),
    ignored("model_revision", of_model),
    ignored("lora_alpha", "scales an update, costs nothing"),
    ignored("lora_dropout", row_says),
    ignored("use_rslora", "scales an update, costs nothing"),
    ignored("attn_impl", "the framework's row says which kernel"),
    ignored("packing*", "sequences are taken as full ones"),
    ignored("padding_free", "sequences are taken as full ones"),
    ignored("group_by_length", "sequences are taken as full ones"),
    ignored("gradient_checkpointing_kwargs*", no_bearing),
    ignored("template*", no_step),
    ignored("system", no_step),
    ignored("dataset*", no_step),
    ignored("val_dataset*", of_evaluation),
    ignored("split_dataset_ratio", of_evaluation),
    ignored("load_from_cache_file", no_step),
    ignored("truncation_strategy", no_step),
    ignored("loss_scale", no_step),
    ignored("dataloader*", "loading is taken as fast enough"),
    ignored("num_train_epochs", no_step),
    ignored("max_steps", no_step),
    ignored("lr_scheduler*", no_step),
    ignored("warmup*", no_step),
    ignored("weight_decay", no_step),
    ignored("adam_*", no_step),
    ignored("max_grad_norm", "clipping is counted as the framework does it"),
    ignored("beta", no_step),
    ignored("seed", no_step),
    ignored("ddp_timeout", no_step),
    ignored("output_dir", of_saving),
    ignored("save*", of_saving),
    ignored("logging*", no_step),
    ignored("report_to*", no_step),
    ignored("use_hf", no_step),
    ignored("model_author*", no_step),
    ignored("model_name*", no_step),
    ignored("per_device_eval_batch_size", of_evaluation),
    ignored("eval*", of_evaluation),
    refused("tuner_backend", "peft", "other kernels would change time and memory"),
    refused("use_liger_kernel", "false", "other kernels would change time and memory"),
    refused("freeze_vit", "true", "training the vision tower is not modelled"),
    refused("freeze_aligner", "true", "training the projector is not modelled"),
    refused("freeze_llm", "false", "training the vision tower alone is not modelled"),
    refused("modules_to_save*", "", "weights trained beside adapters are not modelled"),
    refused("fsdp", "", "its FSDP2 is not modelled; --framework pytorch-fsdp2 is the nearest"),
    refused("sequence_parallel_size", "1", "--plan cp=N,cp-kind=ulysses says it"),
    says_text("micro_batch_size", "megatron-microbatch"),
    says_text("tensor_model_parallel_size", "megatron-tensor"),
    says_text("pipeline_model_parallel_size", "megatron-pipeline"),
};

struct NamedZero {
  std::string_view name, stage;
  bool optimizer, params;  // in the host's memory
};
constexpr NamedZero zeros[] = {
    {"zero0", "0", false, false},        {"zero1", "1", false, false},
    {"zero2", "2", false, false},        {"zero3", "3", false, false},
    {"zero2_offload", "2", true, false}, {"zero3_offload", "3", true, true}};

// A name of these; any other is a file of DeepSpeed's, which is read where it is found.
void say_zero(PlanWords& words, const std::string& file) {
  const auto said = words.words.find("swift-deepspeed");
  if (said == words.words.end()) return;
  for (const NamedZero& zero : zeros) {
    if (said->second.value != zero.name) continue;
    words.default_to("zero", std::string(zero.stage), said->second.where);
    if (zero.optimizer) words.say("offload-optimizer", "true", said->second.where);
    if (zero.params) words.say("offload-params", "true", said->second.where);
    offload_deepspeed(words, file);
  }
}

// `megatron sft` is another program of ms-swift's, with names of Megatron's beside its own.
void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  for (const char* of_megatron : {"megatron-microbatch", "megatron-tensor", "megatron-pipeline"})
    if (words.has(of_megatron))
      return words.problems.push_back(
          {ProblemKind::file, words.where(of_megatron),
           "is for megatron sft, whose engine is Megatron-Core; scripts of swift sft, pt and rlhf "
           "are read here, --framework megatron-swift with --plan says it"});
  tell_other_model(words, context, "model");
  words.default_to("adapter", "true", file);
  if (words.has("quantization-bits")) {
    const PlanWord width = words.words.find("quantization-bits")->second;
    words.say(sentence("quantized-", width.value, "bit"), "true", width.where);
    words.default_to("double-quant", "true", file);
  }
  say_zero(words, file);
  gather_targets(words, file);
  gather_method(words, file);
  if (words.is("adapter", "true") && !words.where("adapter").ends_with(":sft_type"))
    words.imply("lora_targets", "all-linear", file);
  if (words.is("adapter", "false")) words.imply("method", "full", file);
  words.default_to("recompute", "full", file);
  words.default_to("framework", words.has("zero") ? "ms-swift-deepspeed" : "ms-swift", file);
}

}  // namespace
}  // namespace ms_swift

PlanFileFormat ms_swift_format() {
  return {"ms-swift",
          "tuner_type|train_type|sft_type|rlhf_type|split_dataset_ratio|quant_bits|freeze_vit",
          "",
          3,
          ms_swift::keys,
          ms_swift::finish};
}

}  // namespace shardwise
