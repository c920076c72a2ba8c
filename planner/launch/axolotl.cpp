// axolotl: one YAML file. ZeRO-2 and 3 are FSDP2 there, ZeRO-1 is DeepSpeed, whose configuration
// may stand in the same file.
//
// Fields: axolotl 0.19.0, utils/schemas (config.py, fsdp.py, peft.py, training.py).
#include <algorithm>

#include "planner/launch/config_text.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/launch/targets.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace axolotl {
namespace {

constexpr std::string_view offloaded = "full, offloaded";  // of layers' inputs

constexpr Meaning adapters[] = {{"lora", "true"}, {"qlora", "true"}};
constexpr Meaning preferences[] = {
    {"dpo", "dpo"}, {"ipo", "dpo"}, {"kto", "kto"}, {"orpo", "orpo"}, {"simpo", "simpo"}};
// What axolotl does otherwise for a preference.
struct PreferenceSettings {
  std::string_view name;
  bool keeps_columns = false;      // its trainer reads more of the data than a model takes
  bool quantised_in_fsdp = false;  // utils/schemas/validation.py, check_fsdp2_base_model_quant_rl
};
constexpr PreferenceSettings preference_settings[] = {{"kto", true, false}, {"simpo", false, true}};

PreferenceSettings settings_of(const PreferenceRow& preference) {
  for (const PreferenceSettings& s : preference_settings)
    if (s.name == preference.name) return s;
  return {};
}

// utils/schemas/enums.py, CustomSupportedOptimizers @067b021c8, of those that have a row here.
constexpr Meaning own_optimizers[] = {
    {"muon", "muon"}, {"ao_adamw_8bit", "adamw8bit"}, {"ao_adamw_4bit", "adamw4bit"}};
constexpr auto optimizers = joined(hugging_face_optimizers, own_optimizers);

constexpr Meaning checkpointing[] = {
    {"true", "full"}, {"false", "none"}, {"offload", offloaded}, {"offload_disk", offloaded}};
constexpr Meaning rewards[] = {{"true", "reward"}, {"false", ""}};
constexpr Meaning fused[] = {{"true", "true"}, {"false", ""}};
constexpr Meaning bf16[] = {{"true", "bf16"}, {"auto", ""}, {"full", "bf16"}, {"false", ""}};
constexpr Meaning wraps[] = {{"TRANSFORMER_BASED_WRAP", "true"}, {"SIZE_BASED_WRAP", "true"}};
constexpr Meaning stages[] = {{"true", "3"}, {"false", "2"}};
constexpr double placeholder_rate = 2e-5;  // costs nothing, and nobody said

constexpr PlanKey keys[] = {
    says_integer("micro_batch_size", "mbs"),
    says_integer("gradient_accumulation_steps", "ga"),
    says_integer("sequence_len", "sequence"),
    says_choice("gradient_checkpointing", "recompute", checkpointing),
    says_choice("optimizer", "optimizer", optimizers),
    says_choice("bf16", "precision", bf16),
    says_choice("fp16", "precision", fp16_or_not),
    says_number("learning_rate", "learning-rate"),
    says_choice("adapter", "adapter", adapters),
    says_choice("rl", "preference", preferences),
    says_choice("reward_model", "preference", rewards),
    says_choice("liger_fused_linear_cross_entropy", "fused_loss", fused),
    says_choice("load_in_4bit", "quantized-4bit", true_or_false),
    says_choice("load_in_8bit", "quantized-8bit", true_or_false),
    says_choice("quantize_moe_experts", "quantized-experts", true_or_false),
    says_choice("gptq", "stored-gptq", true_or_false),
    says_choice("bnb_config_kwargs.bnb_4bit_use_double_quant", "double-quant", true_or_false),
    says_choice("peft_use_dora", "dora", true_or_false),
    says_integer("lora_r", "lora_rank"),
    says_linears("lora_target_modules*"),
    says_choice("lora_target_linear", "all-linears", true_or_false),
    says_integer("deepspeed.zero_optimization.stage", "zero", 0, 3),
    says_integer("fsdp_version", "fsdp-version", 1, 2),
    says_integer("fsdp_config.fsdp_version", "fsdp-version", 1, 2),
    // Before 0.10 these names began with "fsdp_" (utils/schemas/validation.py:1198-1208).
    says_choice("fsdp_config.reshard_after_forward", "reshard", stages),
    says_choice("fsdp_config.fsdp_reshard_after_forward", "reshard", stages),
    says_choice("fsdp_config.offload_params", "offload-params", true_or_false),
    says_choice("fsdp_config.fsdp_offload_params", "offload-params", true_or_false),
    says_choice("fsdp_config.activation_checkpointing", "fsdp-recompute", full_or_none),
    says_choice("fsdp_config.fsdp_activation_checkpointing", "fsdp-recompute", full_or_none),
    says_choice("fsdp_config.auto_wrap_policy", "fsdp-wrap", wraps),
    says_choice("fsdp_config.fsdp_auto_wrap_policy", "fsdp-wrap", wraps),
    // FSDP1's, which the Trainer is handed (core/builders/base.py:693-695).
    says_choice("fsdp_config.sharding_strategy", "sharding", fsdp_strategies),
    says_choice("fsdp_config.fsdp_sharding_strategy", "sharding", fsdp_strategies),
    says_member("fsdp.*", "fsdp-part", fsdp_parts),
    says_integer("dp_shard_size", "sharded"),
    says_integer("dp_replicate_size", "replicate"),
    says_integer("context_parallel_size", "cp"),
    says_integer("sequence_parallel_degree", "cp"),
    ignored("deepspeed", "its file is read where found, or as another --plan-from"),
    ignored("deepspeed.*", row_says),
    names_model("base_model", named_model),
    ignored("base_model*", of_model),
    ignored("model_type", of_model),
    ignored("tokenizer*", of_model),
    ignored("datasets*", no_step),
    ignored("test_datasets*", no_step),
    ignored("dataset*", no_step),
    ignored("chat_template*", no_step),
    ignored("val_set_size", of_evaluation),
    ignored("output_dir", no_step),
    ignored("sample_packing*", "sequences are taken as full ones"),
    ignored("eval*", of_evaluation),
    ignored("pad_to_sequence_len", "sequences are taken as full ones"),
    ignored("train_on_inputs", no_step),
    ignored("remove_unused_columns", no_step),
    ignored("group_by_length", "sequences are taken as full ones"),
    ignored("lora_alpha", "scales an update, costs nothing"),
    ignored("lora_dropout", row_says),
    ignored("lora_model_dir", no_step),
    ignored("lora_fan_in_fan_out", no_step),
    ignored("lora_modules_to_save*", "is counted as the framework does it"),
    ignored("bnb_config_kwargs.*", row_says),
    ignored("gradient_checkpointing_kwargs*", no_bearing),
    ignored("attn_implementation", "the framework's row says which kernel"),
    ignored("flash_attention", "the framework's row says which kernel"),
    ignored("gemma4_hybrid_attn_impl", "the framework's row says which kernel"),
    ignored("fsdp_config.*", no_bearing),
    ignored("num_epochs", no_step),
    ignored("max_steps", no_step),
    ignored("lr_scheduler*", no_step),
    ignored("warmup*", no_step),
    ignored("weight_decay", no_step),
    ignored("adam_*", no_step),
    ignored("max_grad_norm", "clipping is counted as the framework does it"),
    ignored("tf32", "has no bearing on 16-bit products"),
    ignored("logging*", no_step),
    ignored("save*", no_step),
    ignored("resume*", no_step),
    ignored("wandb*", no_step),
    ignored("hub_*", no_step),
    ignored("special_tokens*", no_step),
    ignored("trust_remote_code", no_step),
    ignored("loss_watchdog*", no_step),
    ignored("eot_tokens*", no_step),
    ignored("push_dataset_to_hub", no_step),
    ignored("skip_prepare_dataset", no_step),
    ignored("shuffle_merged_datasets", no_step),
    ignored("early_stopping_patience", of_evaluation),
    ignored("processor_type", of_model),
    ignored("ddp_timeout", no_step),
    ignored("pretraining_dataset*", no_step),
    ignored("seed", no_step),
    ignored("strict", no_step),
    ignored("plugins*", "the framework's row says which kernels run"),
    refused("liger_*", "false", "further fused Liger kernels would change time and memory"),
    refused("lora_mlp_kernel", "false",
            "axolotl's kernels for adapters would change time and memory"),
    refused("lora_qkv_kernel", "false",
            "axolotl's kernels for adapters would change time and memory"),
    refused("lora_o_kernel", "false",
            "axolotl's kernels for adapters would change time and memory"),
    refused("qat*", "", "training aware of quantisation is not modelled"),
    refused("torch_compile", "false", "compiled kernels would change time and memory"),
    refused("tensor_parallel_size", "1", "tensor parallelism in axolotl is not modelled"),
    refused("unfrozen_parameters*", "", "training some parameters only is not modelled"),
    refused("activation_offloading", "false", "offloading activations is not modelled"),
};

void finish_sharding(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  gather_fsdp_parts(words, "sharding");
  bool fsdp = false;
  for (const std::string_view word :
       {"reshard", "fsdp-version", "sharding", "offload-params", "fsdp-recompute", "fsdp-wrap"})
    fsdp |= words.has(word);
  if (fsdp) {
    if (words.has("sharding")) {
      const PlanWord asked = words.words.find("sharding")->second;
      say_sharding(words, asked.value, asked.where, context);
      if (asked.value.ends_with("+offload"))
        words.default_to("offload-params", "true", asked.where);
    }
    words.default_to("zero", words.is("reshard", "2") ? "2" : "3", file);
    if (words.number_or("replicate", 1) > 1 && words.has("sharded"))
      words.default_to("shard", std::to_string(words.number_or("sharded", 1)), file);
    if (words.is("offload-params", "true")) words.default_to("offload", "params+optimizer", file);
  }
  words.default_to("zero", "0", file);
  recompute_by_fsdp(words);
}

// Without an adapter all weights are trained, whatever is said of adapters beside
// (loaders/model.py, _load_adapters).
void forget_adapters(PlanWords& words, const std::string& file) {
  if (words.has("lora_rank"))
    words.unmet.emplace_back("lora_r", "is of an adapter, and the file asks for none");
  words.forget("lora_rank");
  words.forget("lora_targets");
  words.imply("method", "full", file);
}

// bitsandbytes passes over the experts of transformers 5, one parameter of three dimensions, unless
// quantize_moe_experts is said, which goes with no lora_target_linear (utils/schemas/config.py
// @067b021c8, check_quantize_moe_experts).
std::string_view row_for_experts(PlanWords& words, const Transformer& model) {
  const bool packed = words.is("quantized-4bit", "true") || words.is("quantized-8bit", "true");
  if (!model.moe || !packed) return "axolotl";
  if (!words.is("quantized-experts", "true")) return "axolotl-whole-experts";
  if (words.is("all-linears", "true"))
    words.unmet.emplace_back("lora_target_linear",
                             "axolotl refuses it beside quantize_moe_experts: say "
                             "lora_target_modules; forecast as if every linear were listed there");
  return "axolotl";
}

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  tell_other_model(words, context, "base_model");
  const std::string_view row = row_for_experts(words, *context.model);
  if (words.is("recompute", offloaded)) {
    words.words["recompute"].value = "full";
    words.unmet.emplace_back("gradient_checkpointing",
                             "layers are run again; that their inputs lie on the host is not "
                             "modelled");
  }
  finish_sharding(words, context, file);
  if (words.is("all-linears", "true")) words.default_to("lora_targets", "all-linear", file);
  gather_targets(words, file);
  if (words.is("stored-gptq", "true") && !words.is("dora", "true")) {
    words.default_to("method", "qlora", file);
    words.default_to("quantization", "gptq", file);
  }
  gather_method(words, file);
  if (!words.is("adapter", "true")) forget_adapters(words, file);
  words.default_to("framework", std::string(row), file);
}

std::string_view framework(Method, int) { return "axolotl"; }

std::vector<std::string> workload_refusals(const Workload& w) {
  Refusals to;
  refuse_precision_except(to, w, "axolotl", {DType::bf16, DType::fp16});
  refuse_if(to, w.model.vision && w.images.images > 0,
            "axolotl's keys for images are not written; --images 0 is of text alone");
  refuse_if(to, hugging_face_optimizer(*w.optimizer).empty(),
            sentence("axolotl's Trainer has no optimizer that is ", w.optimizer->name));
  // It quantises with bitsandbytes only, and takes other weights as their config.json says
  // (loaders/model.py, _set_quantization_config).
  refuse_unstored_formats(to, w, "axolotl");
  refuse_if(to, w.preference != nullptr && w.framework.loss.kind == LossKind::fused_linear,
            "the fused loss of preferences is another kernel, which is not written here");
  return to;
}

bool quantizes_experts(const Workload& w) {
  return w.model.moe && is_bitsandbytes(w.adapter.base) && w.framework.quantized.experts;
}

// FlashAttention-2 asks for Ampere (Dao-AILab/flash-attention README).
bool runs_flash_attention_2(const Cluster& cluster) {
  constexpr double ampere = 8.0;
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [](const NodeGroup& g) {
    return g.gpu.compute_capability == 0 || g.gpu.compute_capability >= ampere;
  });
}

std::vector<std::string> plan_refusals_of(const Question& q) {
  const Workload& w = q.workload;
  const ParallelPlan& p = q.plan;
  ParallelPlan without_context = p;
  without_context.context = 1;
  Refusals to;
  refuse_model_parallel(to, without_context, "axolotl");
  refuse_if(to, p.context > 1 && p.context_kind != ContextKind::ring,
            "axolotl splits sequences over a ring only");
  refuse_if(to, p.context > 1 && !runs_flash_attention_2(q.cluster),
            "axolotl's context parallelism runs FlashAttention-2, which asks for Ampere and later");
  refuse_if(to, p.context > 1 && p.zero_stage == 1,
            "axolotl's context parallelism is written with FSDP or without ZeRO");
  refuse_recompute_except(to, p, "axolotl", {"none", "full"});
  refuse_if(to, p.zero_stage == 1 && p.shard_group,
            "DeepSpeed's ZeRO-1 has no shard groups in axolotl");
  refuse_if(to, p.offload.parameters != p.offload.optimizer || p.offload.activations,
            "FSDP moves parameters, gradients and optimizer states to the host together, or none");
  refuse_if(to, p.offload.parameters && p.zero_stage < 2, "axolotl offloads with FSDP only");
  // utils/schemas/validation.py, check_fsdp2_w_8bit_optimizer.
  refuse_if(to,
            p.zero_stage >= 2 && w.optimizer->format == StateFormat::blockwise_8bit &&
                w.optimizer->name != "adamw8bit",
            "axolotl's FSDP2 takes none of bitsandbytes' 8-bit optimizers: say zero=0 or zero=1");
  const bool compares = w.preference != nullptr && !w.preference->scores;
  refuse_if(to,
            compares && !settings_of(*w.preference).quantised_in_fsdp && p.zero_stage >= 2 &&
                w.adapter.base != Quantization::none,
            "axolotl's FSDP2 takes no quantised weights with preferences: say zero=0 or zero=1");
  // utils/schemas/config.py @067b021c8, check_quantize_moe_experts: "requires CUDA".
  refuse_if(
      to,
      quantizes_experts(w) && std::any_of(q.cluster.groups.begin(), q.cluster.groups.end(),
                                          [](const NodeGroup& g) { return g.gpu.vendor == "amd"; }),
      "axolotl quantises experts on CUDA only");
  refuse_if(to, w.preference != nullptr && p.context > 1,
            "axolotl splits sequences of preferences over no ranks");
  return to;
}

void put_adapter(ConfigEntries& e, const Workload& w) {
  if (!row(w.method).adapter) return;
  // utils/schemas/peft.py, validate_qlora: "qlora" needs load_in_4bit and takes neither 8 bits nor
  // GPTQ. Weights that are stored in fewer bits stand below "lora".
  const bool four =
      w.adapter.base == Quantization::nf4 || w.adapter.base == Quantization::nf4_double;
  put(e, "adapter", w.method == Method::qlora && four ? "qlora" : "lora");
  if (w.adapter.base == Quantization::gptq && w.model.stored &&
      w.model.stored->format.starts_with("gptq"))
    put(e, "gptq", true);
  if (w.method == Method::dora) put(e, "peft_use_dora", true);
  if (w.adapter.base == Quantization::int8) put(e, "load_in_8bit", true);
  if (four) {
    put(e, "load_in_4bit", true);
    put(e, "bnb_config_kwargs.bnb_4bit_use_double_quant",
        w.adapter.base == Quantization::nf4_double);
  }
  // Experts of a layer are one parameter, which bitsandbytes does not reach by itself
  // (docs/expert_quantization.qmd).
  const bool packs_experts = quantizes_experts(w);
  if (packs_experts) put(e, "quantize_moe_experts", true);
  put(e, "lora_r", w.adapter.rank);
  // loaders/adapter.py hands PEFT what stands here, and PEFT divides it by the rank: without one
  // nothing runs. As much as the rank scales by 1.
  put(e, "lora_alpha", w.adapter.rank);
  put_number(e, "lora_dropout", w.adapter.dropout);
  // It is refused beside experts that are quantised (utils/schemas/config.py @067b021c8,
  // check_quantize_moe_experts).
  if (every_linear(w.adapter.targets) && !packs_experts) return put(e, "lora_target_linear", true);
  int place = 0;
  for (const std::string_view name : hugging_face_targets(w.adapter.targets))
    put(e, sentence("lora_target_modules.", place++), name);
}

void put_sharding(ConfigEntries& e, const ParallelPlan& p, const Workload& w) {
  if (p.zero_stage == 1) {
    put(e, "deepspeed.zero_optimization.stage", 1);
    put(e, "deepspeed.bf16.enabled", "auto");
    put(e, "deepspeed.train_micro_batch_size_per_gpu", "auto");
    put(e, "deepspeed.gradient_accumulation_steps", "auto");
  }
  if (p.zero_stage >= 2) {
    put(e, "fsdp_version", 2);
    put(e, "fsdp_config.auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    put(e, "fsdp_config.reshard_after_forward", p.zero_stage == 3);
    put(e, "fsdp_config.offload_params", p.offload.parameters);
    // With 4-bit weights axolotl refuses it: quantising on one rank alone would deadlock.
    put(e, "fsdp_config.cpu_ram_efficient_loading", w.adapter.base == Quantization::none);
    put(e, "fsdp_config.state_dict_type", "SHARDED_STATE_DICT");
  }
  if (p.shard_group) {
    put(e, "dp_shard_size", *p.shard_group);
    put(e, "dp_replicate_size", p.data / *p.shard_group);
  }
  if (p.context > 1) put(e, "context_parallel_size", p.context);
}

// What is learned from: text as it stands, in full sequences, which is what is forecast, or
// preferences.
void put_learning(ConfigEntries& e, const Workload& w) {
  if (w.preference == nullptr) {
    put(e, "sample_packing", true);
    put(e, "pad_to_sequence_len", true);
  } else if (w.preference->scores) {
    put(e, "reward_model", true);
  } else {
    put(e, "rl", w.preference->name);
    if (settings_of(*w.preference).keeps_columns) put(e, "remove_unused_columns", false);
  }
  if (w.framework.loss.kind != LossKind::fused_linear) return;
  put(e, "plugins.0", "axolotl.integrations.liger.LigerPlugin");
  put(e, "liger_fused_linear_cross_entropy", true);
}

// FSDP2 takes torchao's AdamW of 8 bits, not bitsandbytes'
// (utils/schemas/validation.py @067b021c8, check_fsdp2_w_8bit_optimizer).
std::string_view optimizer_for(const ParallelPlan& p, const OptimizerRow& optimizer) {
  const bool eight = p.zero_stage >= 2 && optimizer.name == "adamw8bit";
  return eight ? "adamw_torch_8bit" : hugging_face_optimizer(optimizer);
}

// Gemma 4 has them where it sees everything: FlashAttention-2 ends at 256, and axolotl runs those
// layers by PyTorch's attention where this key says so (examples/gemma4/README.md @db0e3fc57).
bool has_heads_beyond_flash(const Transformer& m) {
  constexpr int widest = 256;
  return m.global_attention && m.global_attention->head_dim > widest;
}

LaunchFiles write(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const ParallelPlan& p = job.question.plan;
  ConfigEntries e;
  put(e, "base_model", job.model);
  put(e, "datasets.0.path", "REPLACE-WITH-YOUR-DATASET");
  put(e, "datasets.0.type", w.preference == nullptr ? "completion" : "REPLACE-WITH-ITS-FORMAT");
  put(e, "output_dir", "./output");
  put(e, "sequence_len", w.sequence);
  put_learning(e, w);
  put(e, "micro_batch_size", p.microbatch);
  put(e, "gradient_accumulation_steps", p.microbatches);
  put(e, "gradient_checkpointing", p.recompute == "full");
  put(e, "optimizer", optimizer_for(p, *w.optimizer));
  put_number(e, "learning_rate", job.learning_rate.value_or(placeholder_rate));
  put(e, "lr_scheduler", "cosine");
  if (job.steps)
    put(e, "max_steps", *job.steps);
  else
    put(e, "num_epochs", 1);
  put(e, "bf16", w.compute == DType::bf16);
  put(e, "fp16", w.compute == DType::fp16);
  put(e, "attn_implementation",
      runs_flash_attention_2(job.question.cluster) ? "flash_attention_2" : "sdpa");
  if (has_heads_beyond_flash(w.model)) put(e, "gemma4_hybrid_attn_impl", true);
  put_adapter(e, w);
  put_sharding(e, p, w);

  LaunchFiles out;
  out.files.push_back({"axolotl.yaml", yaml_config(e, launch_heading(job))});
  out.command = {"axolotl", "train", "axolotl.yaml", "--launcher", "torchrun", "--"};
  const std::vector<std::string> torchrun = torchrun_words(launch_machines(job.question.cluster));
  out.command.insert(out.command.end(), torchrun.begin() + 1, torchrun.end());
  if (launch_machines(job.question.cluster).nodes > 1)
    out.notes.emplace_back("Run it on every node, with HEAD_NODE set to the first one's name.");
  if (p.context > 1)
    out.notes.emplace_back("Context parallelism there needs the package ring-flash-attn.");
  if (row(w.method).adapter)
    out.notes.emplace_back(
        "Set lora_alpha in axolotl.yaml, which it demands: a placeholder that scales by 1.");
  out.notes.emplace_back(job.learning_rate
                             ? "Set the path of your data in axolotl.yaml."
                             : "Set the path of your data in axolotl.yaml, and learning_rate, "
                               "which axolotl demands: what stands there is a placeholder.");
  add_run_script(out, job, {});
  return out;
}

}  // namespace
}  // namespace axolotl

PlanFileFormat axolotl_format() {
  return {"axolotl", "base_model", "", 3, axolotl::keys, axolotl::finish};
}

LaunchTarget axolotl_target() {
  return {"axolotl",
          "axolotl YAML (DDP, FSDP2, context parallelism, adapters)",
          axolotl::framework,
          axolotl::workload_refusals,
          axolotl::plan_refusals_of,
          axolotl::write};
}

}  // namespace shardwise
