// DeepSpeed through Hugging Face's Trainer: ds_config.json and sft.yaml.
//
// Keys: deepspeed 0.19.8, runtime/config.py, runtime/zero/config.py, zero/offload_config.py. The
// sizes of buckets are those that the Trainer puts in place of "auto" (transformers
// integrations/deepspeed.py), which is what catalog/frameworks/hf-deepspeed.json forecasts.
#include <algorithm>

#include "planner/launch/config_text.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/targets.hpp"
#include "planner/launch/trl_script.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace deepspeed {
namespace {

constexpr Meaning devices[] = {{"none", "false"}, {"cpu", "true"}, {"nvme", "nvme"}};
constexpr Meaning old_offload[] = {{"true", "true"}, {"false", ""}};
constexpr Meaning optimizers[] = {{"AdamW", "adamw"},
                                  {"Adam", "adamw"},
                                  {"adamw", "adamw"},
                                  {"FusedAdam", "adamw"},
                                  {"DeepSpeedCPUAdam", "adamw"},
                                  {"Lion", "lion"},
                                  {"FusedLion", "lion"},
                                  {"Muon", "muon"},
                                  {"SGD", "sgd"}};

constexpr PlanKey keys[] = {
    says_integer("train_batch_size", "batch"),
    says_integer("train_micro_batch_size_per_gpu", "mbs"),
    says_integer("gradient_accumulation_steps", "ga"),
    says_integer("zero_optimization.stage", "zero", 0, 3),
    says_choice("zero_optimization.offload_optimizer.device", "offload-optimizer", devices),
    says_choice("zero_optimization.offload_param.device", "offload-params", devices),
    says_choice("zero_optimization.cpu_offload", "offload-optimizer", old_offload),
    says_integer("zero_optimization.mics_shard_size", "mics", -1),
    says_integer("sequence_parallel_size", "cp"),
    says_integer("tensor_parallel.autotp_size", "tp"),
    says_choice("bf16.enabled", "precision", bf16_or_not),
    says_choice("bfloat16.enabled", "precision", bf16_or_not),
    says_choice("fp16.enabled", "precision", fp16_or_not),
    says_choice("optimizer.type", "optimizer", optimizers),
    says_number("optimizer.params.lr", "learning-rate"),
    refused("zero_optimization.zero_hpz_partition_size", "1",
            "a second copy of the weights per "
            "node is not modelled"),
    refused("zero_optimization.zero_quantized_weights", "false",
            "quantised gathers are not "
            "modelled"),
    refused("zero_optimization.zero_quantized_gradients", "false",
            "quantised reductions are not "
            "modelled"),
    refused("zero_optimization.offload_optimizer.ratio", "1|1.0",
            "partial offload is not "
            "modelled"),
    refused("zero_optimization.cpu_offload_param*", "false", "expected offload_param.device"),
    refused("zero_optimization.memory_efficient_linear", "true",
            "gathered weights would stay until backward"),
    ignored("zero_optimization.offload_optimizer.*", no_bearing),
    ignored("zero_optimization.offload_param.*", no_bearing),
    ignored("zero_optimization.overlap_comm", row_says),
    ignored("zero_optimization.contiguous_gradients", row_says),
    ignored("zero_optimization.reduce_scatter", row_says),
    ignored("zero_optimization.reduce_bucket_size", row_says),
    ignored("zero_optimization.allgather_bucket_size", row_says),
    ignored("zero_optimization.allgather_partitions", row_says),
    ignored("zero_optimization.round_robin_gradients", no_bearing),
    ignored("zero_optimization.sub_group_size", no_bearing),
    ignored("zero_optimization.stage3_*", row_says),
    // The same without their prefix (runtime/zero/config.py: names beside aliases).
    ignored("zero_optimization.max_live_parameters", row_says),
    ignored("zero_optimization.max_reuse_distance", row_says),
    ignored("zero_optimization.prefetch_bucket_size", row_says),
    ignored("zero_optimization.param_persistence_threshold", row_says),
    ignored("zero_optimization.gather_16bit_weights_on_model_save", of_saving),
    ignored("zero_optimization.elastic_checkpoint", of_saving),
    ignored("zero_optimization.ignore_unused_parameters", no_bearing),
    ignored("gradient_clipping", "clipping is counted as the framework does it"),
    ignored("zero_allow_untested_optimizer", no_bearing),
    ignored("zero_force_ds_cpu_optimizer", no_bearing),
    ignored("bf16.*", no_bearing),
    ignored("fp16.*", no_bearing),
    ignored("optimizer.params.*", no_step),
    ignored("optimizer.legacy_fusion", no_bearing),
    ignored("scheduler.*", no_step),
    ignored("steps_per_print", no_step),
    ignored("wall_clock_breakdown", no_step),
    ignored("prescale_gradients", no_step),
    ignored("checkpoint.*", of_saving),
    ignored("flops_profiler.*", no_step),
    ignored("tensorboard.*", no_step),
    ignored("wandb.*", no_step),
    ignored("comms_logger.*", no_step),
    ignored("activation_checkpointing.number_checkpoints", no_bearing),
    ignored("activation_checkpointing.profile", no_bearing),
    ignored("activation_checkpointing.synchronize_checkpoint_boundary", no_bearing),
    ignored("activation_checkpointing.contiguous_memory_optimization", no_bearing),
    refused("activation_checkpointing.partition_activations", "false",
            "activations split over "
            "tensor ranks are not modelled"),
    refused("activation_checkpointing.cpu_checkpointing", "false",
            "activations kept on the host "
            "are not modelled"),
    refused("communication_data_type", "", "the framework's row says how gradients travel"),
    refused("data_types.grad_accum_dtype", "", "the framework's row says how gradients add up"),
    refused("amp.enabled", "false", "Apex is not modelled"),
    refused("torch_autocast.enabled", "false", "autocast within DeepSpeed is not modelled"),
    refused("compression_training*", "", "would change the model"),
    refused("sparse_attention*", "", "would change attention"),
    refused("pipeline*", "", "pipeline stages are set in code, not here"),
    refused("elasticity.enabled", "false", "the batch would not be the one written"),
    refused("curriculum_learning.enabled", "false", "sequences would not have one length"),
};

// Of a batch alone, or with rounds, the microbatch is what is left, and the rounds are one
// (deepspeedai/DeepSpeed @029f12b3c6 runtime/config.py, _set_batch_related_parameters).
void finish_batch(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  if (!words.has("batch") || words.has("mbs")) return;
  const int together =
      std::max(1, words.number_or("tp", 1) * words.number_or("cp", 1) * words.number_or("pp", 1));
  const int data = std::max(1, context.cluster->gpus() / together);
  words.imply("ga", "1", file);
  const int rounds = std::max(1, words.number_or("ga", 1));
  const int each = words.number_or("batch", 0) / data / rounds;
  if (each < 1 || each * data * rounds != words.number_or("batch", 0)) {
    words.wrong("batch", sentence("does not divide over ", data, " data ranks and ", rounds,
                                  rounds == 1 ? " round" : " rounds"));
    return;
  }
  words.imply("mbs", std::to_string(each), words.where("batch"));
}

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  finish_batch(words, context, file);
  words.default_to("zero", "0", file);
  offload_deepspeed(words, file);
  words.default_to("offload", "none", file);
  if (words.number_or("cp", 1) > 1) words.default_to("cp-kind", "ulysses", words.where("cp"));
  if (const auto shard = words.number("mics"); shard && *shard > 0)
    words.default_to("shard", std::to_string(*shard), words.where("mics"));
  words.default_to("framework", "hf-deepspeed", file);
}

std::string_view framework(Method, int) { return "hf-deepspeed"; }

std::vector<std::string> plan_refusals_of(const Question& q) {
  const ParallelPlan& p = q.plan;
  ParallelPlan without_context = p;
  without_context.context = 1;
  Refusals to = trl_plan_refusals(p);
  refuse_model_parallel(to, without_context, "DeepSpeed with the Trainer");
  refuse_if(to, p.context > 1 && p.context_kind != ContextKind::ulysses,
            "DeepSpeed splits sequences the Ulysses way only");
  refuse_if(to, p.context > 1 && p.zero_stage == 0,
            "without ZeRO the Trainer hands no sequence ranks to DeepSpeed");
  refuse_if(to, p.shard_group.has_value(),
            "a shard group (MiCS) needs DeepSpeed's own initialisation, which the Trainer lacks");
  refuse_if(to, p.offload.parameters && p.zero_stage < 3,
            "DeepSpeed offloads parameters with ZeRO-3 only");
  refuse_if(to, p.offload.optimizer && p.zero_stage == 0,
            "DeepSpeed offloads the optimizer with ZeRO only");
  refuse_if(to, p.offload.activations, "activations are not offloaded with DeepSpeed here");
  refuse_if(to, q.workload.compute == DType::fp32 && p.zero_stage > 0,
            "fp32 with ZeRO is not written here");
  return to;
}

void put_offload(ConfigEntries& e, const std::string& path, bool on) {
  if (!on) return;
  put(e, path + ".device", "cpu");
  put(e, path + ".pin_memory", true);
}

void put_optimizer(ConfigEntries& e, const LaunchJob& job) {
  const Workload& w = job.question.workload;
  if (w.optimizer->name != "adamw") {
    put(e, "zero_allow_untested_optimizer", true);  // the Trainer's own, named in sft.yaml
    return;
  }
  put(e, "optimizer.type", "AdamW");
  if (job.learning_rate)
    put_number(e, "optimizer.params.lr", *job.learning_rate);
  else
    put(e, "optimizer.params.lr", "auto");
  put(e, "optimizer.params.weight_decay", "auto");
}

ConfigEntries deepspeed_entries(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const ParallelPlan& p = job.question.plan;
  ConfigEntries e;
  // Beside ranks that share sequences the Trainer would compare it with a product over all ranks
  // (transformers 5.23.0 integrations/deepspeed.py, trainer_config_process).
  if (p.context == 1) put(e, "train_batch_size", p.global_batch());
  put(e, "train_micro_batch_size_per_gpu", p.microbatch);
  put(e, "gradient_accumulation_steps", p.microbatches);
  put_number(e, "gradient_clipping", 1.0);
  put(e, "bf16.enabled", w.compute == DType::bf16);
  put(e, "fp16.enabled", w.compute == DType::fp16);
  put(e, "zero_optimization.stage", p.zero_stage);
  const std::int64_t hidden = w.model.hidden;
  if (p.zero_stage > 0) {
    put(e, "zero_optimization.overlap_comm", w.framework.gradients.overlap_reduce);
    put(e, "zero_optimization.contiguous_gradients", true);
    put(e, "zero_optimization.reduce_bucket_size", hidden * hidden);
  }
  if (p.zero_stage == 3) {
    put(e, "zero_optimization.stage3_prefetch_bucket_size", hidden * hidden * 9 / 10);
    put(e, "zero_optimization.stage3_param_persistence_threshold", 10 * hidden);
    put(e, "zero_optimization.stage3_gather_16bit_weights_on_model_save", true);
  }
  put_offload(e, "zero_optimization.offload_optimizer", p.offload.optimizer);
  put_offload(e, "zero_optimization.offload_param", p.offload.parameters);
  if (p.context > 1) put(e, "sequence_parallel_size", p.context);
  put_optimizer(e, job);
  return e;
}

// Accelerate, which the Trainer rests on, takes them from the environment
// (accelerate/parallelism_config.py, accelerator.py).
std::vector<Environment> sequence_ranks(const ParallelPlan& p) {
  if (p.context == 1) return {};
  return {{"ACCELERATE_USE_PARALLELISM_CONFIG", "true"},
          {"PARALLELISM_CONFIG_SP_SIZE", std::to_string(p.context)},
          {"PARALLELISM_CONFIG_SP_BACKEND", "deepspeed"}};
}

// The launcher hands other nodes no variables but those of this file (deepspeed/launcher/runner.py
// @2d991ba352, EXPORT_ENVS and DEEPSPEED_ENVIRONMENT_NAME).
void add_environment_file(LaunchFiles& out, const LaunchJob& job,
                          const std::vector<Environment>& environment) {
  std::string text;
  for (const Environment& e : whole_environment(job, environment))
    text += sentence(e.name, "=", e.value, "\n");
  if (!text.empty()) out.files.push_back({".deepspeed_env", std::move(text)});
}

LaunchFiles write(const LaunchJob& job) {
  const LaunchMachines machines = launch_machines(job.question.cluster);
  LaunchFiles out;
  out.files.push_back({"ds_config.json", json_config(deepspeed_entries(job))});
  ConfigEntries script = trl_entries(job);
  put(script, "deepspeed", "ds_config.json");
  out.files.push_back({trl_file(job), yaml_config(script, launch_heading(job))});
  out.command = {"deepspeed", "--num_gpus", std::to_string(machines.gpus_per_node)};
  if (machines.nodes > 1) {
    const std::vector<std::string> more = {"--num_nodes",   std::to_string(machines.nodes),
                                           "--hostfile",    "hostfile",
                                           "--master_addr", "\"$HEAD_NODE\""};
    out.command.insert(out.command.end(), more.begin(), more.end());
    out.notes.push_back(
        sentence("Write a hostfile with one line for each node, such as: node-0 "
                 "slots=",
                 machines.gpus_per_node, "; run it on the first node only."));
    add_environment_file(out, job, sequence_ranks(job.question.plan));
  }
  out.command.emplace_back("--no_local_rank");
  out.command.emplace_back("--module");
  const std::vector<std::string> words = trl_words(job);
  out.command.insert(out.command.end(), words.begin(), words.end());
  out.notes.push_back(trl_note(job));
  add_run_script(out, job, sequence_ranks(job.question.plan));
  return out;
}

}  // namespace
}  // namespace deepspeed

PlanFileFormat deepspeed_format() {
  return {"DeepSpeed",
          "zero_optimization|train_micro_batch_size_per_gpu|train_batch_size|bf16.enabled|"
          "fp16.enabled",
          "auto",
          2,
          deepspeed::keys,
          deepspeed::finish};
}

LaunchTarget deepspeed_target() {
  return {"deepspeed",
          "DeepSpeed ds_config.json and TRL's SFT script (ZeRO 0 to 3)",
          deepspeed::framework,
          trl_workload_refusals,
          deepspeed::plan_refusals_of,
          deepspeed::write};
}

}  // namespace shardwise
