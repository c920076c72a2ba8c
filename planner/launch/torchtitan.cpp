// torchtitan: one TOML file for `python -m torchtitan.train --job.config_file`.
//
// Fields: torchtitan 0.2.2, config/job_config.py, the last line of releases that reads TOML (0.3
// configures in Python). There, context ranks shard along with data ranks; with pipeline stages the
// local batch is cut into microbatches, without them the global batch decides how often gradients
// accumulate; stages get ceil(layers / n) layers unless modules are named one by one.
#include "planner/figures.hpp"
#include "planner/launch/config_text.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/launch/targets.hpp"
#include "planner/launch/torchtitan_stages.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace torchtitan {
namespace {

struct Flavor {
  std::string_view model, flavor, model_type;
  int layers, hidden, ffn, vocab;
  std::string_view id;  // in the catalog
  bool flex_attention = false;
};
// torchtitan/models/<model>/__init__.py at v0.2.2.
constexpr Flavor flavors[] = {
    {"llama3", "8B", "llama", 32, 4096, 14336, 128256, "llama-3.1-8b"},
    {"llama3", "70B", "llama", 80, 8192, 28672, 128256, "llama-3.1-70b"},
    {"llama3", "405B", "llama", 126, 16384, 53248, 128256, "llama-3.1-405b"},
    {"qwen3", "0.6B", "qwen3", 28, 1024, 3072, 151936, "qwen3-0.6b"},
    {"qwen3", "1.7B", "qwen3", 28, 2048, 6144, 151936, "qwen3-1.7b"},
    {"qwen3", "4B", "qwen3", 36, 2560, 9728, 151936, "qwen3-4b"},
    {"qwen3", "8B", "qwen3", 36, 4096, 12288, 151936, "qwen3-8b"},
    {"qwen3", "14B", "qwen3", 40, 5120, 17408, 151936, "qwen3-14b"},
    {"qwen3", "32B", "qwen3", 64, 5120, 25600, 151936, "qwen3-32b"},
    {"qwen3", "30B-A3B", "qwen3_moe", 48, 2048, 6144, 151936, "qwen3-30b-a3b"},
    {"qwen3", "235B-A22B", "qwen3_moe", 94, 4096, 12288, 151936, "qwen3-235b-a22b"},
    {"deepseek_v3", "16B", "deepseek_v2", 27, 2048, 10944, 102400, "deepseek-v2-lite", true},
    {"deepseek_v3", "236B", "deepseek_v2", 60, 5120, 12288, 102400, "deepseek-v2", true},
    {"deepseek_v3", "671B", "deepseek_v3", 61, 7168, 18432, 129280, "deepseek-v3", true},
};

const Flavor* flavor_of(const Transformer& m) {
  for (const Flavor& f : flavors)
    if (f.model_type == m.model_type && f.layers == m.layers && f.hidden == m.hidden &&
        f.ffn == m.ffn && f.vocab == m.vocab)
      return &f;
  return nullptr;
}

constexpr Meaning schedules[] = {{"1F1B", "1f1b"},
                                 {"GPipe", "gpipe"},
                                 {"Interleaved1F1B", "interleaved"},
                                 {"ZBVZeroBubble", "zb-v"},
                                 {"DualPipeV", "dualpipe-v"}};
constexpr Meaning rotations[] = {{"allgather", "all-gather"}, {"alltoall", "ring"}};
constexpr Meaning reshards[] = {{"always", "3"}, {"never", "2"}, {"default", "default"}};
constexpr Meaning modes[] = {{"none", "none"}, {"full", "full"}, {"selective", "selective"}};
constexpr Meaning params[] = {{"bfloat16", "bf16"}, {"float32", "fp32"}};
constexpr Meaning dtypes[] = {{"float32", ""}};
constexpr Meaning converters[] = {{"float8", "fp8"},
                                  {"quantize.linear.float8", "fp8"},
                                  {"mx", "mxfp8"},
                                  {"quantize.linear.mx", "mxfp8"}};
constexpr Meaning optimizers[] = {{"AdamW", "adamw"}, {"Adam", "adamw"}};
constexpr Meaning offloads[] = {{"true", "params+optimizer"}, {"false", "none"}};

constexpr std::string_view not_modelled = "would change time and memory in ways not modelled";

constexpr PlanKey keys[] = {
    says_integer("training.local_batch_size", "local-batch"),
    says_integer("training.global_batch_size", "global-batch", -1),
    says_integer("training.seq_len", "sequence"),
    says_choice("training.mixed_precision_param", "precision", params),
    says_choice("training.dtype", "dtype", dtypes),
    says_choice("training.enable_cpu_offload", "offload", offloads),
    says_integer("parallelism.data_parallel_replicate_degree", "replicate"),
    says_integer("parallelism.data_parallel_shard_degree", "sharded", -1),
    says_choice("parallelism.fsdp_reshard_after_forward", "reshard", reshards),
    says_integer("parallelism.tensor_parallel_degree", "tp"),
    says_choice("parallelism.enable_async_tensor_parallel", "async-tp", true_or_false),
    says_integer("parallelism.context_parallel_degree", "cp"),
    says_choice("parallelism.context_parallel_rotate_method", "rotation", rotations),
    says_integer("parallelism.pipeline_parallel_degree", "pp"),
    says_choice("parallelism.pipeline_parallel_schedule", "schedule", schedules),
    says_integer("parallelism.pipeline_parallel_microbatch_size", "pipeline-microbatch"),
    says_integer("parallelism.pipeline_parallel_layers_per_stage", "layers-per-chunk"),
    says_integer("parallelism.pipeline_parallel_first_stage_less_layers", "first-less", 0),
    says_integer("parallelism.pipeline_parallel_last_stage_less_layers", "last-less", 0),
    counts_layers("parallelism.module_fqns_per_model_part*", "module"),
    // As release 0.1 called them.
    says_integer("training.batch_size", "local-batch"),
    says_integer("training.data_parallel_replicate_degree", "replicate"),
    says_integer("training.data_parallel_shard_degree", "sharded", -1),
    says_choice("training.fsdp_reshard_after_forward", "reshard", reshards),
    says_integer("training.tensor_parallel_degree", "tp"),
    says_choice("experimental.enable_async_tensor_parallel", "async-tp", true_or_false),
    says_integer("experimental.context_parallel_degree", "cp"),
    says_choice("experimental.context_parallel_rotate_method", "rotation", rotations),
    says_integer("experimental.pipeline_parallel_degree", "pp"),
    says_choice("experimental.pipeline_parallel_schedule", "schedule", schedules),
    says_integer("parallelism.expert_parallel_degree", "ep"),
    says_integer("parallelism.expert_tensor_parallel_degree", "etp"),
    says_choice("activation_checkpoint.mode", "recompute-mode", modes),
    says_text("activation_checkpoint.selective_ac_option", "selective-option"),
    says_choice("optimizer.name", "optimizer", optimizers),
    says_number("optimizer.lr", "learning-rate"),
    ignored("optimizer.*", no_step),
    ignored("job.*", no_step),
    ignored("profiling.*", no_step),
    ignored("metrics.*", no_step),
    says_choice("model.converters*", "converter", converters),
    names_model("model.name", "named-family"),
    names_model("model.flavor", "named-flavor"),
    ignored("model.*", of_model),
    ignored("lr_scheduler.*", no_step),
    ignored("training.dataset*", no_step),
    ignored("training.dataloader*", "loading is taken as fast enough"),
    ignored("training.max_norm", "clipping is counted as the framework does it"),
    ignored("training.steps", no_step),
    ignored("training.gc_*", no_step),
    ignored("training.mixed_precision_reduce", row_says),
    ignored("training.seed", no_step),
    ignored("checkpoint.*", of_saving),
    ignored("comm.*", no_step),
    ignored("debug.*", no_step),
    ignored("validation.*", of_evaluation),
    ignored("activation_checkpoint.*", no_bearing),
    ignored("compile.components*", "decides nothing unless compile.enable is true"),
    ignored("compile.backend", "decides nothing unless compile.enable is true"),
    ignored("parallelism.context_parallel_load_balancer", "ranks are taken as balanced"),
    ignored("parallelism.pipeline_parallel_expert_parallel_overlap", "the schedule says it"),
    refused("parallelism.pipeline_parallel_schedule_csv", "", not_modelled),
    refused("parallelism.disable_loss_parallel", "false", not_modelled),
    refused("parallelism.expert_parallel_comm_backend", "standard", not_modelled),
    refused("compile.enable", "false", "the framework's row is of uncompiled kernels"),
    refused("quantize*", "", "the recipe of a converter is not read: one scale per tensor"),
    refused("fault_tolerance.enable", "false", not_modelled),
};

void finish_sharding(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  const int replicate = words.number_or("replicate", 1);
  const int rest =
      words.number_or("tp", 1) * words.number_or("cp", 1) * words.number_or("pp", 1) * replicate;
  int sharded = words.number_or("sharded", -1);
  if (sharded < 1 && context.cluster->gpus() % rest == 0) sharded = context.cluster->gpus() / rest;
  if (sharded < 1) {
    words.problems.push_back({ProblemKind::file, file,
                              sentence("lays out a multiple of ", counted(rest, "GPU"),
                                       ", asked for are ", context.cluster->gpus())});
    return;
  }
  words.say("dp", replicate * sharded, file);
  const bool keeps =
      words.is("reshard", "2") || (!words.is("reshard", "3") && words.number_or("pp", 1) > 1);
  const bool on = sharded > 1 || words.number_or("cp", 1) > 1;
  words.say("zero", !on ? 0 : keeps ? 2 : 3, file);
  if (on && replicate > 1) words.say("shard", sharded, file);
}

void finish_batch(PlanWords& words, const std::string& file) {
  const int local = words.number_or("local-batch", 8);  // torchtitan's default
  const int data = words.number_or("dp", 1);
  int global = words.number_or("global-batch", -1);
  if (global < 1) global = local * data;
  const int microbatch =
      words.number_or("pp", 1) > 1 ? words.number_or("pipeline-microbatch", 1) : local;
  if (local % microbatch != 0 || global % (local * data) != 0) {
    words.wrong(words.has("global-batch") ? "global-batch" : "local-batch",
                sentence("a global batch of ", global, " does not divide into local batches of ",
                         local, " on ", data, " data ranks and microbatches of ", microbatch));
    return;
  }
  words.say("mbs", microbatch, file);
  words.say("ga", global / data / microbatch, file);
  words.default_to("batch", std::to_string(global), file);
}

// selective_ac_option where a file is silent: "2", every second layer (config/job_config.py).
constexpr int every_second = 2;

void finish_recompute(PlanWords& words, const std::string& file) {
  const std::string where = words.has("recompute-mode") ? words.where("recompute-mode") : file;
  const bool selective = words.is("recompute-mode", "selective") || !words.has("recompute-mode");
  if (!selective) {
    words.say("recompute", words.words.find("recompute-mode")->second.value, where);
  } else if (words.is("selective-option", "op")) {
    words.say("recompute", "selective-op", where);
  } else if (const int n = words.number_or("selective-option",
                                           words.has("selective-option") ? 0 : every_second);
             n > 0) {
    words.say("recompute", n == 1 ? "full" : sentence("one-in-", n, "-layers"), where);
  } else {
    words.wrong("selective-option",
                "expected \"op\", or a number of layers of which one is recomputed");
  }
}

void tell_other_flavor(PlanWords& words, const PlanFileContext& context) {
  const Flavor* asked = flavor_of(*context.model);
  for (const Flavor& f : flavors)
    if (&f != asked && words.is("named-family", f.model) && words.is("named-flavor", f.flavor))
      tell_another(words, context, "model.flavor", sentence("names ", f.model, ' ', f.flavor));
}

std::string text_at(const ConfigEntries& entries, std::string_view path) {
  for (const ConfigEntry& e : entries)
    if (e.path == path)
      if (const auto* text = std::get_if<std::string>(&e.value)) return *text;
  return {};
}

// The model that name and flavor mean together.
std::string model_of(const ConfigEntries& entries) {
  const std::string model = text_at(entries, "model.name"),
                    flavor = text_at(entries, "model.flavor");
  for (const Flavor& f : flavors)
    if (f.model == model && f.flavor == flavor) return std::string(f.id);
  return {};
}

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  tell_other_flavor(words, context);
  finish_sharding(words, context, file);
  finish_batch(words, file);
  finish_recompute(words, file);
  if (words.number_or("tp", 1) > 1) words.say("sp", "true", words.where("tp"));
  if (words.number_or("cp", 1) > 1) {
    words.default_to("rotation", "all-gather", file);  // torchtitan's default
    words.say("cp-kind", words.words.find("rotation")->second.value, words.where("rotation"));
  }
  if (words.number_or("ep", 1) > 1) words.default_to("etp", "1", file);
  if (words.number_or("pp", 1) > 1)
    read_torchtitan_stages(words, context, file);
  else
    words.forget("schedule");
  if (words.has("converter")) {  // whatever training.mixed_precision_param says
    const PlanWord format = words.words.find("converter")->second;
    words.forget("precision");
    words.say("precision", format.value, format.where);
  }
  words.default_to("framework", "torchtitan", file);
  words.imply("method", "pretrain", file);
  words.imply("sequence", "2048", file);  // torchtitan's default
}

std::string_view framework(Method, int) { return "torchtitan"; }

int sharded_ranks(const ParallelPlan& p) {
  return p.zero_stage == 0 ? 1 : p.shard_group.value_or(p.data);
}

std::vector<std::string> workload_refusals(const Workload& w) {
  Refusals to;
  refuse_if(to, flavor_of(w.model) == nullptr,
            sentence("torchtitan 0.2.2 has no model with the sizes of ", w.model.id));
  refuse_adapters(to, w, "torchtitan");
  refuse_other_losses(to, w, "torchtitan");
  refuse_precision_except(to, w, "torchtitan", {DType::bf16, DType::fp32});
  refuse_if(to, w.optimizer->name != "adamw", "torchtitan is written with AdamW only");
  return to;
}

// The ranks over which an expert's weights are sharded: those that shard and the sequence's, and of
// tp what does not split experts, less those that hold other experts (distributed/parallel_dims.py,
// efsdp).
bool shards_experts(const ParallelPlan& p) {
  const int ranks = sharded_ranks(p) * p.context * p.tensor, others = p.expert * p.expert_tensor;
  return ranks % others == 0;
}

// What torchtitan stops at: models/*/infra/parallelize.py, models/qwen3/model/model.py
// (init_weights), distributed/parallel_dims.py (seq_len_divisor), and PyTorch's
// PipelineScheduleSingle.
void refuse_what_stops(Refusals& to, const Question& q) {
  const Workload& w = q.workload;
  const ParallelPlan& p = q.plan;
  const Flavor* flavor = flavor_of(w.model);
  refuse_if(to, p.zero_stage == 0 && p.data > 1 && (p.tensor > 1 || p.pipeline > 1),
            "torchtitan's DDP goes with no other ranks: zero=2 or zero=3");
  // distributed/utils.py, maybe_enable_amp; distributed/parallel_dims.py, fsdp_enabled.
  refuse_if(to,
            p.data * p.context == 1 && (p.tensor > 1 || p.pipeline > 1) &&
                w.activation_dtype() != DType::fp32,
            "torchtitan mixes precision only where ranks share weights, and would train in fp32 "
            "here: say dp or cp above 1");
  refuse_if(to, w.model.moe && p.expert > 1 && !shards_experts(p),
            sentence("experts over ", p.expert * p.expert_tensor,
                     " ranks need a multiple of them among those that share weights (shard x cp x "
                     "tp)"));
  refuse_if(to, p.context > 1 && flavor != nullptr && flavor->flex_attention,
            sentence("torchtitan's ", flavor == nullptr ? "" : flavor->model,
                     " runs FlexAttention, which knows no context parallelism there"));
  refuse_if(to, (p.tensor > 1 || p.context > 1) && w.sequence % (2 * p.tensor * p.context) != 0,
            sentence("torchtitan asks for sequences of a multiple of 2 x tp x cp = ",
                     2 * p.tensor * p.context, " tokens"));
  refuse_if(to, p.pipeline > 1 && w.model.tied_embeddings,
            "torchtitan does not tie embeddings over pipeline stages");
  refuse_if(to, p.pipeline > 1 && p.chunks == 1 && p.microbatches < p.pipeline,
            sentence("PyTorch's ", p.schedule, " needs a microbatch per stage, ", p.pipeline,
                     ", not ", p.microbatches));
}

std::vector<std::string> plan_refusals_of(const Question& q) {
  const Workload& w = q.workload;
  const ParallelPlan& p = q.plan;
  Refusals to;
  refuse_recompute_except(to, p, "torchtitan", {"none", "full", "selective-op"});
  refuse_if(to, p.zero_stage == 1, "torchtitan shards gradients too: zero=2 or zero=3");
  refuse_if(to, p.context > 1 && p.zero_stage == 0,
            "torchtitan shards over context ranks: zero=2 or zero=3 with cp");
  refuse_if(to, p.zero_stage > 0 && p.data > 1 && p.shard_group == 1 && p.context == 1,
            "shard groups of one rank shard nothing");
  refuse_if(to, p.context > 1 && p.context_kind == ContextKind::ulysses,
            "torchtitan 0.2.2 has no Ulysses attention");
  refuse_if(to, p.tensor > 1 && !p.sequence_parallel,
            "torchtitan's tensor parallelism is always with sequence parallelism");
  refuse_if(to, p.async_tensor,
            "async tensor parallelism needs torch.compile there, which is not "
            "what is forecast");
  refuse_if(to, p.pipeline > 1 && spelled(schedules, p.schedule).empty(),
            sentence("torchtitan's pipelining has no schedule that is ", p.schedule));
  refuse_if(to, p.layer_split, "torchtitan does not split layers over cards in turns");
  refuse_if(to, w.model.moe && p.expert_tensor != 1 && p.expert_tensor != p.tensor,
            "torchtitan's experts are split by all of tp or not at all");
  refuse_if(to, w.model.moe && p.expert == 1 && p.expert_tensor != p.tensor,
            "without expert ranks torchtitan splits experts by tp");
  refuse_if(to, p.offload.parameters != p.offload.optimizer || p.offload.activations,
            "FSDP moves parameters, gradients and optimizer states to the host together, or none");
  refuse_if(to, p.offload.parameters && p.zero_stage == 0, "torchtitan offloads with FSDP only");
  if (p.pipeline > 1) refuse_torchtitan_stages(to, p, w.model);
  refuse_what_stops(to, q);
  return to;
}

void put_parallelism(ConfigEntries& e, const LaunchJob& job) {
  const ParallelPlan& p = job.question.plan;
  const int sharded = sharded_ranks(p);
  const std::string at = "parallelism.";
  put(e, at + "data_parallel_replicate_degree", p.data / sharded);
  put(e, at + "data_parallel_shard_degree", sharded);
  put(e, at + "fsdp_reshard_after_forward", p.zero_stage == 2 ? "never" : "always");
  put(e, at + "tensor_parallel_degree", p.tensor);
  put(e, at + "context_parallel_degree", p.context);
  if (p.context > 1)
    put(e, at + "context_parallel_rotate_method",
        p.context_kind == ContextKind::ring ? "alltoall" : "allgather");
  put(e, at + "pipeline_parallel_degree", p.pipeline);
  if (p.pipeline > 1) {
    put(e, at + "pipeline_parallel_schedule", spelled(schedules, p.schedule));
    put(e, at + "pipeline_parallel_microbatch_size", p.microbatch);
    put_torchtitan_stages(e, p, job.question.workload.model);
  }
  if (p.expert > 1) {
    put(e, at + "expert_parallel_degree", p.expert);
    put(e, at + "expert_tensor_parallel_degree", p.expert_tensor);
  }
}

// Fine-tuning starts from Hugging Face weights. Without initial_load_path they are read from
// model.hf_assets_path (components/checkpoint.py:583-618 at v0.2.2), and the published weights of
// the 671B have 8 bits (models/deepseek_v3/model/state_dict_adapter.py, get_hf_storage_reader).
void put_checkpoint(ConfigEntries& e, Method method, const Flavor& flavor) {
  if (method != Method::full) return;
  put(e, "checkpoint.enable", true);
  put(e, "checkpoint.initial_load_in_hf", true);
  put(e, "checkpoint.initial_load_model_only", true);
  if (flavor.flavor == "671B") put(e, "checkpoint.initial_load_in_hf_quantized", true);
}

ConfigEntries torchtitan_entries(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const ParallelPlan& p = job.question.plan;
  const Flavor& flavor = *flavor_of(w.model);
  ConfigEntries e;
  put(e, "job.dump_folder", "./output");
  put(e, "model.name", flavor.model);
  put(e, "model.flavor", flavor.flavor);
  put(e, "model.hf_assets_path",
      job.model.starts_with('/')
          ? job.model
          : sentence("./assets/hf/", job.model.substr(job.model.rfind('/') + 1)));
  put(e, "optimizer.name", "AdamW");
  if (job.learning_rate) put_number(e, "optimizer.lr", *job.learning_rate);
  put(e, "optimizer.implementation", w.framework.update.fused ? "fused" : "foreach");
  put(e, "training.local_batch_size", p.microbatch * (p.pipeline > 1 ? p.microbatches : 1));
  put(e, "training.global_batch_size", p.global_batch());
  put(e, "training.seq_len", w.sequence);
  put(e, "training.mixed_precision_param", w.compute == DType::fp32 ? "float32" : "bfloat16");
  if (job.steps) put(e, "training.steps", *job.steps);
  put(e, "training.dataset", "c4");
  put(e, "training.enable_cpu_offload", p.offload.parameters);
  put_parallelism(e, job);
  put(e, "activation_checkpoint.mode", p.recompute == "selective-op" ? "selective" : p.recompute);
  if (p.recompute == "selective-op") put(e, "activation_checkpoint.selective_ac_option", "op");
  put_checkpoint(e, w.method, flavor);
  put(e, "compile.enable", false);
  return e;
}

LaunchFiles write(const LaunchJob& job) {
  LaunchFiles out;
  out.files.push_back(
      {"torchtitan.toml", toml_config(torchtitan_entries(job), launch_heading(job))});
  out.command = torchrun_words(launch_machines(job.question.cluster));
  for (const char* word : {"-m", "torchtitan.train", "--job.config_file", "torchtitan.toml"})
    out.command.emplace_back(word);
  if (launch_machines(job.question.cluster).nodes > 1)
    out.notes.emplace_back("Run it on every node, with HEAD_NODE set to the first one's name.");
  out.notes.emplace_back("For torchtitan 0.2.x. Set model.hf_assets_path and training.dataset.");
  // torchtitan/config/job_config.py @000204a4, Optimizer.lr.
  if (!job.learning_rate && job.question.workload.method == Method::full)
    out.notes.emplace_back(
        "Set optimizer.lr in torchtitan.toml, or give --learning-rate here: without it torchtitan "
        "takes 8e-4, a rate for training from scratch.");
  if (job.question.workload.method == Method::full)
    out.notes.emplace_back(
        "Weights are loaded from model.hf_assets_path: put the model's safetensors there, beside "
        "its tokenizer. A checkpoint is saved every 500 steps unless checkpoint.interval says "
        "otherwise.");
  add_run_script(out, job, {});
  return out;
}

}  // namespace
}  // namespace torchtitan

PlanFileFormat torchtitan_format() {
  return {"torchtitan",
          "parallelism|training.local_batch_size|activation_checkpoint",
          "",
          3,
          torchtitan::keys,
          torchtitan::finish,
          torchtitan::model_of,
          "model.flavor"};
}

LaunchTarget torchtitan_target() {
  return {"torchtitan",
          "torchtitan 0.2 TOML (FSDP2, HSDP, TP, CP, PP, EP)",
          torchtitan::framework,
          torchtitan::workload_refusals,
          torchtitan::plan_refusals_of,
          torchtitan::write};
}

}  // namespace shardwise
