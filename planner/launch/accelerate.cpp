// Hugging Face Accelerate: accelerate.yaml, which `accelerate launch` takes, and sft.yaml.
//
// Fields: accelerate 1.15.0, commands/config/config_args.py ClusterConfig and the launcher's
// --fsdp_* arguments. The forecast is of FSDP1 (catalog/frameworks/accelerate-fsdp.json), so that
// is what is written: FULL_SHARD is ZeRO-3, SHARD_GRAD_OP ZeRO-2, their HYBRID kin shard within
// a node only.
#include "planner/launch/config_text.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/targets.hpp"
#include "planner/launch/trl_script.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace accelerate {
namespace {

constexpr Meaning distributions[] = {
    {"NO", "none"}, {"MULTI_GPU", "ddp"}, {"FSDP", "fsdp"}, {"DEEPSPEED", "deepspeed"}};
constexpr Meaning reshards[] = {{"true", "3"},
                                {"false", "2"},
                                {"FULL_SHARD", "3"},
                                {"SHARD_GRAD_OP", "2"},
                                {"NO_SHARD", "0"},
                                {"HYBRID_SHARD", "3-node"},
                                {"HYBRID_SHARD_ZERO2", "2-node"}};
constexpr Meaning precisions[] = {
    {"bf16", "bf16"}, {"fp16", "fp16"}, {"no", "fp32"}, {"false", "fp32"}};
constexpr Meaning devices[] = {{"none", ""}, {"cpu", "true"}, {"nvme", "nvme"}};

constexpr PlanKey keys[] = {
    says_choice("distributed_type", "distribution", distributions),
    says_integer("num_processes", "processes"),
    says_integer("num_machines", "machines"),
    says_choice("mixed_precision", "precision", precisions),
    says_integer("fsdp_config.fsdp_version", "fsdp-version", 1, 2),
    says_choice("fsdp_config.fsdp_sharding_strategy", "sharding", fsdp_strategies),
    says_choice("fsdp_config.fsdp_reshard_after_forward", "sharding", reshards),
    says_choice("fsdp_config.fsdp_offload_params", "offload-params", true_or_false),
    says_choice("fsdp_config.fsdp_activation_checkpointing", "fsdp-recompute", full_or_none),
    says_integer("parallelism_config.parallelism_config_dp_replicate_size", "replicate"),
    says_integer("parallelism_config.parallelism_config_dp_shard_size", "sharded"),
    says_integer("parallelism_config.parallelism_config_tp_size", "tp"),
    says_integer("parallelism_config.parallelism_config_cp_size", "cp"),
    says_integer("deepspeed_config.zero_stage", "zero", 0, 3),
    says_integer("deepspeed_config.gradient_accumulation_steps", "ga"),
    says_choice("deepspeed_config.offload_optimizer_device", "offload-optimizer", devices),
    says_choice("deepspeed_config.offload_param_device", "offload-params", devices),
    ignored("deepspeed_config.deepspeed_config_file",
            "its file is read where found, or as another --plan-from"),
    ignored("deepspeed_config.*", no_bearing),
    ignored("compute_environment", no_step),
    ignored("fsdp_config.fsdp_auto_wrap_policy", "blocks are taken as the units"),
    ignored("fsdp_config.fsdp_transformer_layer_cls_to_wrap", "blocks are taken as the units"),
    ignored("fsdp_config.fsdp_state_dict_type", of_saving),
    ignored("fsdp_config.fsdp_use_orig_params", row_says),
    ignored("fsdp_config.fsdp_sync_module_states", no_step),
    ignored("fsdp_config.fsdp_cpu_ram_efficient_loading", row_says),
    ignored("fsdp_config.fsdp_backward_prefetch*", row_says),
    refused("fsdp_config.fsdp_forward_prefetch", "false", "would gather a block earlier"),
    refused("fsdp_config.fsdp_min_num_params", "0|100000000", "units by size are not modelled"),
    refused("parallelism_config.parallelism_config_sp_size", "1", "would split sequences"),
    ignored("parallelism_config.*", no_bearing),
    ignored("machine_rank", no_step),
    ignored("main_*", no_step),
    ignored("rdzv_backend", no_step),
    ignored("same_network", no_step),
    ignored("gpu_ids", "the GPUs are those asked for"),
    ignored("enable_cpu_affinity", no_bearing),
    ignored("tpu_*", "has no bearing on GPUs"),
    ignored("debug", no_step),
    refused("downcast_bf16", "no|false", "concerns TPUs"),
    refused("use_cpu", "false", "would run on the CPU"),
    refused("dynamo_config*", "NO", "compiled kernels would change time and memory"),
    refused("fp8_config*", "", "fp8 through Accelerate is not modelled"),
    refused("megatron_lm_config*", "", "give Megatron's own arguments"),
    refused("mpirun_config*", "", "concerns CPUs"),
};

// ZeRO stage and shard group from the sharding strategy.
void finish_sharding(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  if (!words.is("distribution", "fsdp")) return;
  words.default_to("sharding", "3", file);  // FULL_SHARD is the launcher's default
  const std::string sharding = words.words.find("sharding")->second.value;
  const std::string where = words.where("sharding");
  say_sharding(words, sharding, where, context);
  if (words.number_or("replicate", 1) > 1 && words.has("sharded"))
    words.default_to("shard", std::to_string(words.number_or("sharded", 1)), where);
}

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  finish_sharding(words, context, file);
  const bool fsdp = words.is("distribution", "fsdp");
  if (!fsdp && !words.is("distribution", "deepspeed")) words.default_to("zero", "0", file);
  // FSDP moves all of it, DeepSpeed what is asked for.
  if (fsdp && words.is("offload-params", "true"))
    words.default_to("offload", "params+optimizer", file);
  else
    offload_deepspeed(words, file);
  recompute_by_fsdp(words);
  if (const auto n = words.number("processes"); n && *n != context.cluster->gpus())
    words.wrong("processes", sentence("starts ", *n, *n == 1 ? " process" : " processes",
                                      ", the GPUs asked for are ", context.cluster->gpus()));
  if (words.is("distribution", "deepspeed"))
    words.default_to("framework", "hf-deepspeed", file);
  else if (fsdp)
    words.default_to("framework",
                     words.is("fsdp-version", "2") ? "pytorch-fsdp2" : "accelerate-fsdp", file);
  else
    words.imply("framework", "hf-trainer", file);  // but a script's arguments may know better
}

// run.sh starts TRL's scripts. What they do to a whole model is the Trainer's, told its loss.
std::string_view framework(Method method, int zero_stage) {
  if (zero_stage > 0) return "accelerate-fsdp";
  return row(method).adapter ? "trl" : "hf-trainer";
}

std::vector<std::string> plan_refusals_of(const Question& q) {
  const ParallelPlan& p = q.plan;
  const int per_node = launch_machines(q.cluster).gpus_per_node;
  Refusals to = trl_plan_refusals(p);
  refuse_model_parallel(to, p, "Accelerate with the Trainer");
  refuse_if(to, p.zero_stage == 1,
            "FSDP shards gradients along with optimizer states: ZeRO-1 needs DeepSpeed");
  refuse_if(to, p.shard_group && *p.shard_group != per_node,
            sentence("FSDP1's hybrid strategies shard within a node, of ", per_node, " GPUs here"));
  refuse_if(to, p.offload.optimizer != p.offload.parameters,
            "FSDP moves parameters, gradients and optimizer states to the host together, or none");
  refuse_if(to, p.offload.parameters && p.zero_stage == 0, "only FSDP offloads here");
  refuse_if(to, p.offload.activations, "activations are not offloaded with FSDP here");
  return to;
}

std::string_view strategy(const ParallelPlan& p) {
  if (p.shard_group) return p.zero_stage == 3 ? "HYBRID_SHARD" : "HYBRID_SHARD_ZERO2";
  return p.zero_stage == 3 ? "FULL_SHARD" : "SHARD_GRAD_OP";
}

ConfigEntries accelerate_entries(const LaunchJob& job) {
  const Question& q = job.question;
  const ParallelPlan& p = q.plan;
  ConfigEntries e;
  put(e, "compute_environment", "LOCAL_MACHINE");
  put(e, "distributed_type",
      p.zero_stage > 0        ? "FSDP"
      : q.cluster.gpus() == 1 ? "NO"
                              : "MULTI_GPU");
  put(e, "num_machines", launch_machines(q.cluster).nodes);
  put(e, "num_processes", q.cluster.gpus());
  put(e, "mixed_precision", q.workload.compute == DType::fp32 ? "no" : name(q.workload.compute));
  put(e, "main_training_function", "main");
  put(e, "use_cpu", false);
  if (p.zero_stage == 0) return e;
  put(e, "fsdp_config.fsdp_version", 1);
  put(e, "fsdp_config.fsdp_sharding_strategy", strategy(p));
  put(e, "fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
  put(e, "fsdp_config.fsdp_offload_params", p.offload.parameters);
  put(e, "fsdp_config.fsdp_activation_checkpointing", false);  // the Trainer's own is used
  put(e, "fsdp_config.fsdp_use_orig_params", true);
  put(e, "fsdp_config.fsdp_sync_module_states", true);
  put(e, "fsdp_config.fsdp_cpu_ram_efficient_loading", true);
  put(e, "fsdp_config.fsdp_forward_prefetch", false);
  put(e, "fsdp_config.fsdp_state_dict_type", "SHARDED_STATE_DICT");
  return e;
}

LaunchFiles write(const LaunchJob& job) {
  LaunchFiles out;
  out.files.push_back(
      {"accelerate.yaml", yaml_config(accelerate_entries(job), launch_heading(job))});
  out.files.push_back({trl_file(job), yaml_config(trl_entries(job), launch_heading(job))});
  out.command = {"accelerate", "launch", "--config_file", "accelerate.yaml"};
  if (launch_machines(job.question.cluster).nodes > 1) {
    const std::vector<std::string> more = {"--machine_rank",      "\"$NODE_RANK\"",
                                           "--main_process_ip",   "\"$HEAD_NODE\"",
                                           "--main_process_port", "29500"};
    out.command.insert(out.command.end(), more.begin(), more.end());
    out.notes.emplace_back("Run it on every node, with HEAD_NODE and NODE_RANK (0, 1, ...) set.");
  }
  out.command.emplace_back("-m");
  const std::vector<std::string> script = trl_words(job);
  out.command.insert(out.command.end(), script.begin(), script.end());
  out.notes.push_back(trl_note(job));
  add_run_script(out, job, {});
  return out;
}

}  // namespace
}  // namespace accelerate

PlanFileFormat accelerate_format() {
  return {"Accelerate",      "distributed_type|compute_environment", "", 1, accelerate::keys,
          accelerate::finish};
}

LaunchTarget accelerate_target() {
  return {"accelerate",
          "Accelerate YAML and TRL's SFT script (DDP, FSDP)",
          accelerate::framework,
          trl_workload_refusals,
          accelerate::plan_refusals_of,
          accelerate::write};
}

}  // namespace shardwise
