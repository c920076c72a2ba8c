// Fields: trl 1.16.0 SFTConfig, DPOConfig, KTOConfig, RewardConfig and ModelConfig, transformers
// 5.23.0 TrainingArguments, liger_kernel's switches (transformers/integrations/liger.py).
#include "planner/launch/trl_script.hpp"

#include <array>
#include <span>

#include "planner/launch/formats.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr Meaning nf4_only[] = {{"nf4", ""}};
// SFT's losses, over whole logits or slices of them, KTO's, and else DPO's.
constexpr Meaning losses[] = {{"nll", "whole"},
                              {"dft", "whole"},
                              {"chunked_nll", "chunked"},
                              {"kto", "kto"},
                              {"apo_zero_unpaired", "kto"},
                              {"sigmoid", "dpo"},
                              {"ipo", "dpo"},
                              {"hinge", "dpo"},
                              {"robust", "dpo"},
                              {"exo_pair", "dpo"},
                              {"apo_zero", "dpo"},
                              {"apo_down", "dpo"},
                              {"nca_pair", "dpo"},
                              {"bco_pair", "dpo"},
                              {"sppo_hard", "dpo"},
                              {"aot", "dpo"},
                              {"aot_unpaired", "dpo"},
                              {"aot_pair", "dpo"},
                              {"discopop", "dpo"},
                              {"sigmoid_norm", "dpo"},
                              {"sft", ""}};  // a term beside another loss
constexpr Meaning on[] = {{"true", "true"}, {"false", ""}};
constexpr std::string_view other_liger_kernels[] = {"rope", "rms_norm", "layer_norm", "swiglu",
                                                    "geglu"};
constexpr Meaning off[] = {{"true", ""}, {"false", "false"}};

// TrainingArguments.fsdp: what is sharded, "offload", and how modules are wrapped.
constexpr Meaning sharding[] = {{"false", ""},
                                {"", ""},
                                {"true", "3"},
                                {"full_shard", "3"},
                                {"full_shard auto_wrap", "3"},
                                {"full_shard offload", "3+offload"},
                                {"full_shard offload auto_wrap", "3+offload"},
                                {"full_shard auto_wrap offload", "3+offload"},
                                {"shard_grad_op", "2"},
                                {"shard_grad_op auto_wrap", "2"},
                                {"shard_grad_op offload", "2+offload"},
                                {"shard_grad_op offload auto_wrap", "2+offload"},
                                {"shard_grad_op auto_wrap offload", "2+offload"},
                                {"hybrid_shard", "3-node"},
                                {"hybrid_shard auto_wrap", "3-node"},
                                {"hybrid_shard offload", "3-node+offload"},
                                {"hybrid_shard offload auto_wrap", "3-node+offload"},
                                {"hybrid_shard auto_wrap offload", "3-node+offload"},
                                {"hybrid_shard_zero2", "2-node"},
                                {"hybrid_shard_zero2 auto_wrap", "2-node"},
                                {"hybrid_shard_zero2 offload", "2-node+offload"},
                                {"hybrid_shard_zero2 offload auto_wrap", "2-node+offload"},
                                {"hybrid_shard_zero2 auto_wrap offload", "2-node+offload"}};

// Of a model that is trained whole: TRL loads fp32 where nothing is said, "auto" as stored (trl
// @f2cd57710 trl/trainer/model_config.py:89-97).
constexpr Meaning weight_formats[] = {{"auto", "half"},          {"bfloat16", "half"},
                                      {"float16", "half"},       {"torch.bfloat16", "half"},
                                      {"torch.float16", "half"}, {"float32", "wide"},
                                      {"torch.float32", "wide"}};

constexpr PlanKey trl_keys[] = {
    says_integer("per_device_train_batch_size", "mbs"),
    says_integer("gradient_accumulation_steps", "ga"),
    says_integer("max_length", "sequence"),
    says_integer("max_seq_length", "sequence"),    // TRL's older name
    says_integer("model_max_length", "sequence"),  // in the scripts of Alpaca and FastChat
    says_choice("gradient_checkpointing", "recompute", full_or_none),
    says_choice("activation_checkpointing", "recompute", full_or_none),
    says_choice("optim", "optimizer", hugging_face_optimizers),
    says_choice("bf16", "precision", bf16_or_not),
    says_choice("fp16", "precision", fp16_or_not),
    says_number("learning_rate", "learning-rate"),
    says_choice("use_peft", "adapter", true_or_false),
    says_choice("use_dora", "dora", true_or_false),
    says_integer("lora_r", "lora_rank"),
    says_linears("lora_target_modules*"),
    says_choice("load_in_4bit", "quantized-4bit", true_or_false),
    says_choice("load_in_8bit", "quantized-8bit", true_or_false),
    says_choice("use_bnb_nested_quant", "double-quant", true_or_false),
    says_choice("bnb_4bit_quant_type", "4bit-type", nf4_only),
    names_model("model_name_or_path", named_model),
    ignored("model_revision", of_model),
    ignored("tf32", "has no bearing on 16-bit products"),
    says_choice("dtype", "weights", weight_formats),
    says_choice("torch_dtype", "weights", weight_formats),
    ignored("deepspeed", "its file is read where found, or as another --plan-from"),
    ignored("packing*", "sequences are taken as full ones"),
    ignored("dataset*", no_step),
    ignored("output_dir", no_step),
    ignored("attn_implementation", "the framework's row says which kernel"),
    ignored("bnb_4bit_quant_storage", "the framework's row says whether 4-bit weights shard"),
    says_choice("loss_type*", "loss-type", losses),
    says_choice("use_liger_kernel", "liger", on),
    says_choice("liger_kernel_config.fused_linear_cross_entropy", "liger-loss", true_or_false),
    says_choice("liger_kernel_config.rope", "liger-rope", off),
    says_choice("liger_kernel_config.rms_norm", "liger-rms_norm", off),
    says_choice("liger_kernel_config.layer_norm", "liger-layer_norm", off),
    says_choice("liger_kernel_config.swiglu", "liger-swiglu", off),
    says_choice("liger_kernel_config.geglu", "liger-geglu", off),
    ignored("liger_kernel_config.cross_entropy", "the fused loss takes its place"),
    ignored("center_rewards_coefficient", "a term of the loss alone"),
    ignored("beta", no_step),
    ignored("gradient_checkpointing_kwargs*", no_bearing),
    ignored("lora_alpha", "scales an update, costs nothing"),
    ignored("lora_dropout", row_says),
    ignored("lora_task_type", no_step),
    ignored("max_steps", no_step),
    ignored("num_train_epochs", no_step),
    ignored("max_grad_norm", "clipping is counted as the framework does it"),
    ignored("warmup*", no_step),
    ignored("weight_decay", no_step),
    ignored("adam_*", no_step),
    ignored("lr_scheduler*", no_step),
    ignored("logging*", no_step),
    ignored("log_*", no_step),
    ignored("save*", no_step),
    ignored("eval*", of_evaluation),
    ignored("do_*", of_evaluation),
    ignored("per_device_eval_batch_size", of_evaluation),
    ignored("report_to*", no_step),
    ignored("run_name", no_step),
    ignored("seed", no_step),
    ignored("data_seed", no_step),
    ignored("push_to_hub", no_step),
    ignored("hub_*", no_step),
    ignored("dataloader*", "loading is taken as fast enough"),
    ignored("remove_unused_columns", no_step),
    ignored("trust_remote_code", no_step),
    ignored("overwrite_output_dir", no_step),
    ignored("chat_template*", no_step),
    ignored("eos_token", no_step),
    ignored("pad_token", no_step),
    ignored("ddp_timeout", no_step),
    ignored("assistant_only_loss", no_step),
    ignored("average_tokens_across_devices", no_step),
    ignored("group_by_length", "sequences are taken as full ones"),
    ignored("max_prompt_length", "a part of max_length"),
    ignored("env*", "the run's environment, not its plan"),
    refused("activation_offloading", "false", "offloading activations is not modelled"),
    refused("torch_compile", "false", "compiled kernels would change time and memory"),
    says_choice("fsdp", "trainer-fsdp", sharding),
    says_member("fsdp.*", "fsdp-part", fsdp_parts),
    ignored("fsdp_transformer_layer_cls_to_wrap", "blocks are taken as the units"),
    // TrainingArguments takes these names with and without "fsdp_".
    says_choice("fsdp_config.activation_checkpointing", "fsdp-recompute", full_or_none),
    says_choice("fsdp_config.fsdp_activation_checkpointing", "fsdp-recompute", full_or_none),
    ignored("fsdp_config.*", "taken as FSDP's defaults"),
    refused("padding_free", "false", "batches without padding would change time"),
    refused("auto_find_batch_size", "false", "the batch would not be the one written"),
};

// Liger's fused loss is known; its other kernels run unless they are switched off.
void finish_liger(PlanWords& words, const std::string& file) {
  if (!words.is("liger", "true")) return;
  if (!words.is("liger-loss", "false")) words.default_to("fused_loss", "true", file);
  for (const std::string_view kernel : other_liger_kernels) {
    if (words.is(sentence("liger-", kernel), "false")) continue;
    words.unmet.emplace_back("use_liger_kernel",
                             "Liger's kernels beside the loss would change time and memory");
    return;
  }
}

// Without use_peft all weights are trained, whatever is said of adapters beside (trl 0.24
// trainer/utils.py, get_peft_config: "if model_args.use_peft is False ... return None").
void forget_unused_adapters(PlanWords& words, const std::string& file) {
  const bool speaks = words.has("lora_rank") || words.has("lora_targets");
  const bool quantised = words.is("quantized-4bit", "true") || words.is("quantized-8bit", "true");
  if (!speaks || words.is("adapter", "true") || quantised) return;
  if (words.has("lora_rank"))
    words.unmet.emplace_back("lora_r",
                             "is of an adapter, and without use_peft: true TRL trains "
                             "all weights");
  words.forget("lora_rank");
  words.forget("lora_targets");
  words.imply("method", "full", file);
}

// One process or DDP; FSDP and DeepSpeed are other files' to say. TRL's scripts train adapters,
// sft on its own chunked loss where nothing says otherwise. What they do to a whole model is the
// Trainer's, told its loss and the format of its weights.
void imply_trainer(PlanWords& words, const std::string& file) {
  const bool adapter = words.is("adapter", "true");
  const bool whole_logits = words.is("loss-type", "whole") && !words.is("fused_loss", "true");
  if (adapter && !whole_logits) {
    words.default_to("framework", "trl", file);
    return;
  }
  if (words.is("framework", "hf-trainer")) words.forget("framework");  // as Accelerate's file does
  const bool wide = !adapter && !words.is("method", "pretrain") && !words.is("weights", "half");
  words.imply("framework", wide ? "hf-trainer-fp32" : "hf-trainer", file);
}

void trl_finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  tell_other_model(words, context, "model_name_or_path");
  if (const auto loss = words.words.find("loss-type"); loss != words.words.end())
    if (const PreferenceRow* preference = preference_named(loss->second.value))
      words.say("preference", std::string(preference->name), std::string(loss->second.where));
  finish_liger(words, file);
  gather_targets(words, file);
  forget_unused_adapters(words, file);
  gather_method(words, file);
  gather_fsdp_parts(words, "trainer-fsdp");
  if (words.has("trainer-fsdp")) {
    const PlanWord asked = words.words.find("trainer-fsdp")->second;
    say_sharding(words, asked.value, asked.where, context);
    if (asked.value.ends_with("offload")) words.say("offload", "params+optimizer", asked.where);
    words.default_to("framework", "accelerate-fsdp", file);
    recompute_by_fsdp(words);
  }
  imply_trainer(words, file);
}

// The scripts that TRL brings along (trl/scripts) for preferences, each with a key that says its
// loss: reading back knows the script by it.
struct TrlScript {
  std::string_view name;  // of the preference too
  std::string_view key;
  ConfigValue value;
};

std::span<const TrlScript> trl_scripts() {
  static const std::array<TrlScript, 3> rows{
      {{"dpo", "loss_type.0", std::string("sigmoid")},
       {"kto", "loss_type", std::string("kto")},
       {"reward", "center_rewards_coefficient", std::monostate{}}}};
  return rows;
}

// nullptr: the script is "sft", also where TRL has none.
const TrlScript* script_of(const Workload& w) {
  for (const TrlScript& script : trl_scripts())
    if (w.preference != nullptr && w.preference->name == script.name) return &script;
  return nullptr;
}

std::string_view script_name(const Workload& w) {
  const TrlScript* script = script_of(w);
  return script == nullptr ? "sft" : script->name;
}

// What is learned from.
void put_loss(ConfigEntries& e, const Workload& w) {
  if (const TrlScript* script = script_of(w)) {
    e.push_back({std::string(script->key), script->value});
    return;
  }
  // Full sequences, which is what is forecast: cut from one stream, a microbatch of them side by
  // side. TRL's own way lays a microbatch end to end, which PyTorch's attention then runs over as
  // one sequence (trl/trainer/sft_trainer.py, padding_free); models with images it does not pack.
  put(e, "packing", !w.model.vision);
  if (!w.model.vision) put(e, "packing_strategy", "wrapped");
  put(e, "loss_type", w.framework.loss.kind == LossKind::chunked ? "chunked_nll" : "nll");
  if (w.framework.loss.kind != LossKind::fused_linear) return;
  put(e, "use_liger_kernel", true);
  put(e, "liger_kernel_config.fused_linear_cross_entropy", true);
  put(e, "liger_kernel_config.cross_entropy", false);
  for (const std::string_view kernel : other_liger_kernels)
    put(e, sentence("liger_kernel_config.", kernel), false);
}

void put_peft(ConfigEntries& e, const Workload& w) {
  if (!row(w.method).adapter) return;
  put(e, "use_peft", true);
  if (w.method == Method::dora) put(e, "use_dora", true);
  put(e, "lora_r", w.adapter.rank);
  put_number(e, "lora_dropout", w.adapter.dropout);
  if (every_linear(w.adapter.targets)) {
    put(e, "lora_target_modules.0", "all-linear");
  } else {
    int place = 0;
    for (const std::string_view name : hugging_face_targets(w.adapter.targets))
      put(e, sentence("lora_target_modules.", place++), name);
  }
  if (w.adapter.base == Quantization::int8) put(e, "load_in_8bit", true);
  if (w.adapter.base != Quantization::nf4 && w.adapter.base != Quantization::nf4_double) return;
  put(e, "load_in_4bit", true);
  put(e, "bnb_4bit_quant_type", "nf4");
  put(e, "use_bnb_nested_quant", w.adapter.base == Quantization::nf4_double);
  put(e, "bnb_4bit_quant_storage", "bfloat16");
}

}  // namespace

PlanFileFormat trl_format() {
  return {"Hugging Face Trainer",
          "per_device_train_batch_size|gradient_accumulation_steps|model_name_or_path",
          "",
          0,
          trl_keys,
          trl_finish};
}

PlanFileFormat trl_reward_format() {
  PlanFileFormat format = trl_format();
  format.name = "Hugging Face Trainer for rewards";
  format.marks = "center_rewards_coefficient";
  format.finish = [](PlanWords& words, const PlanFileContext& context, const std::string& file) {
    words.default_to("preference", "reward", file);
    trl_finish(words, context, file);
  };
  return format;
}

Refusals trl_workload_refusals(const Workload& w) {
  Refusals to;
  refuse_if(to, w.preference != nullptr && script_of(w) == nullptr,
            sentence("TRL has no script for ", w.preference != nullptr ? w.preference->name : "",
                     "; axolotl has a setting"));
  refuse_if(to, w.preference != nullptr && w.framework.loss.kind == LossKind::fused_linear,
            "the fused loss of preferences is another kernel, which is not written here");
  refuse_precision_except(to, w, "the Trainer", {DType::bf16, DType::fp16, DType::fp32});
  // get_quantization_config: load_in_4bit and load_in_8bit, both of bitsandbytes.
  refuse_unstored_formats(to, w, "TRL");
  refuse_if(to, hugging_face_optimizer(*w.optimizer).empty(),
            sentence("the Trainer has no optimizer that is ", w.optimizer->name));
  return to;
}

Refusals trl_plan_refusals(const ParallelPlan& p) {
  Refusals to;
  refuse_recompute_except(to, p, "the Trainer", {"none", "full"});
  return to;
}

ConfigEntries trl_entries(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const ParallelPlan& p = job.question.plan;
  ConfigEntries e;
  put(e, "model_name_or_path", job.model);
  const bool half =
      w.weights() != WeightRecipe::fp32_with_half_compute && w.weights() != WeightRecipe::fp32;
  put(e, "dtype",
      !half && !row(w.method).adapter ? "float32"
      : w.compute == DType::fp16      ? "float16"
                                      : "bfloat16");
  put(e, "dataset_name", "REPLACE-WITH-YOUR-DATASET");
  put(e, "output_dir", "output");
  put(e, "max_length", w.sequence);
  put_loss(e, w);
  put(e, "per_device_train_batch_size", p.microbatch);
  put(e, "gradient_accumulation_steps", p.microbatches);
  put(e, "gradient_checkpointing", p.recompute == "full");
  put(e, "optim", hugging_face_optimizer(*w.optimizer));
  put(e, "bf16", w.compute == DType::bf16);
  put(e, "fp16", w.compute == DType::fp16);
  if (job.learning_rate) put_number(e, "learning_rate", *job.learning_rate);
  if (job.steps) put(e, "max_steps", *job.steps);
  put_peft(e, w);
  return e;
}

std::string trl_file(const LaunchJob& job) {
  return sentence(script_name(job.question.workload), ".yaml");
}

std::vector<std::string> trl_words(const LaunchJob& job) {
  return {sentence("trl.scripts.", script_name(job.question.workload)), "--config", trl_file(job)};
}

std::string trl_note(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const bool trains_tower = w.model.vision && !row(w.method).adapter;
  return sentence("Set dataset_name in ", trl_file(job),
                  ", or put your own training script in place of trl.scripts.", script_name(w), ".",
                  trains_tower
                      ? " The vision tower is forecast frozen, and those scripts train it: "
                        "freeze it in your own."
                      : "");
}

}  // namespace shardwise
