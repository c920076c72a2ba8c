// Megatron-LM: megatron.args, the arguments of pretrain_gpt.py, one a line.
//
// Names: Megatron-LM megatron/training/arguments.py @d98e8a64dd. ZeRO-1 is the distributed
// optimizer; ZeRO-2 and 3 are Megatron-FSDP with its sharding strategies; a shard group is one of
// several instances of the distributed optimizer.
#include <algorithm>

#include "planner/figures.hpp"
#include "planner/launch/config_text.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/megatron_layout.hpp"
#include "planner/launch/megatron_model.hpp"
#include "planner/launch/megatron_plan.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/launch/targets.hpp"
#include "planner/sentence.hpp"
#include "simulator/graphs/recompute_policy.hpp"

namespace shardwise {
namespace megatron {
namespace {

constexpr Meaning context_kinds[] = {
    {"p2p", "ring"}, {"all_gather", "all-gather"}, {"allgather", "all-gather"}, {"a2a", "ulysses"}};
constexpr Meaning granularities[] = {{"full", "full"}, {"selective", "selective"}};
constexpr Meaning methods[] = {{"uniform", "uniform"}, {"block", "block"}};
constexpr Meaning strategies[] = {
    {"no_shard", "0"}, {"optim", "1"}, {"optim_grads", "2"}, {"optim_grads_params", "3"}};
constexpr Meaning fp8[] = {{"hybrid", "fp8"}, {"e4m3", "fp8"}};
constexpr Meaning optimizers[] = {{"adam", "adamw"}, {"sgd", "sgd-momentum"}, {"muon", "muon"}};
// Of what the precision-aware optimizer keeps, by width: fp16 and bf16 take the same.
constexpr Meaning widths[] = {{"fp32", "32"}, {"bf16", "16"}, {"fp16", "16"}, {"fp8", "8"}};
constexpr Meaning selective_flag[] = {{"true", "selective"}, {"false", ""}};
constexpr Meaning finetunes[] = {{"true", "full"}, {"false", ""}};
constexpr Meaning host_optimizer[] = {{"true", "optimizer"}, {"false", "none"}};

constexpr std::string_view grads_in_fp32 = "gradients are summed and reduced in fp32 here";

constexpr PlanKey keys[] = {
    says_integer("tensor-model-parallel-size", "tp"),
    says_choice("sequence-parallel", "sp", true_or_false),
    says_integer("context-parallel-size", "cp"),
    says_choice("cp-comm-type", "cp-comm", context_kinds),
    says_integer("pipeline-model-parallel-size", "pp"),
    says_integer("num-virtual-stages-per-pipeline-rank", "vpp"),
    says_integer("num-layers-per-virtual-pipeline-stage", "layers-per-chunk"),
    says_text("pipeline-model-parallel-layout", "layout"),
    says_integer("decoder-first-pipeline-num-layers", "first-layers", 0),
    says_integer("decoder-last-pipeline-num-layers", "last-layers", 0),
    says_integer("expert-model-parallel-size", "ep"),
    says_integer("expert-tensor-parallel-size", "etp"),
    says_choice("use-distributed-optimizer", "distributed-optimizer", true_or_false),
    says_choice("use-megatron-fsdp", "megatron-fsdp", true_or_false),
    says_choice("data-parallel-sharding-strategy", "strategy", strategies),
    says_integer("num-distributed-optimizer-instances", "instances"),
    says_integer("micro-batch-size", "mbs"),
    says_integer("global-batch-size", "batch"),
    says_integer("seq-length", "sequence"),
    says_choice("recompute-granularity", "granularity", granularities),
    says_choice("recompute-activations", "granularity", selective_flag),
    says_choice("recompute-method", "method-of-recompute", methods),
    says_integer("recompute-num-layers", "recompute-layers"),
    says_choice("optimizer-cpu-offload", "offload", host_optimizer),
    says_choice("tp-comm-overlap", "async-tp", true_or_false),
    says_choice("bf16", "half", bf16_or_not),
    says_choice("fp16", "half", fp16_or_not),
    says_choice("fp8-format", "precision", fp8),
    says_choice("optimizer", "optimizer", optimizers),
    says_choice("use-precision-aware-optimizer", "precision-aware", true_or_false),
    says_choice("exp-avg-dtype", "first-moment", widths),
    says_choice("exp-avg-sq-dtype", "second-moment", widths),
    says_choice("main-params-dtype", "master", widths),
    says_choice("finetune", "method", finetunes),
    says_number("lr", "learning-rate"),
    says_integer("nnodes", "machines"),
    says_integer("nproc_per_node", "processes-per-node"),
    says_integer("nproc-per-node", "processes-per-node"),
    names_model("num-layers", "named-layers"),
    names_model("hidden-size", "named-hidden"),
    ignored("ffn-hidden-size", of_model),
    ignored("num-attention-heads", of_model),
    ignored("group-query-attention", of_model),
    ignored("num-query-groups", of_model),
    ignored("kv-channels", of_model),
    ignored("max-position-embeddings", of_model),
    ignored("position-embedding-type", of_model),
    ignored("rotary-*", of_model),
    ignored("use-rotary-position-embeddings", of_model),
    ignored("normalization", of_model),
    ignored("norm-epsilon", of_model),
    ignored("swiglu", of_model),
    ignored("disable-bias-linear", of_model),
    ignored("add-qkv-bias", of_model),
    ignored("qk-layernorm", of_model),
    ignored("untie-embeddings-and-output-weights", of_model),
    ignored("make-vocab-size-divisible-by", of_model),
    ignored("vocab-size", of_model),
    ignored("num-experts", of_model),
    ignored("multi-latent-attention", of_model),
    ignored("q-lora-rank", of_model),
    ignored("kv-lora-rank", of_model),
    ignored("qk-head-dim", of_model),
    ignored("qk-pos-emb-head-dim", of_model),
    ignored("v-head-dim", of_model),
    ignored("window-*", of_model),
    ignored("moe-*", "experts are taken as the model has them, evenly loaded"),
    ignored("attention-dropout", row_says),
    ignored("hidden-dropout", row_says),
    ignored("overlap-*", row_says),
    ignored("use-flash-attn", row_says),
    ignored("attention-backend", row_says),
    ignored("attention-softmax-in-fp32", row_says),
    ignored("transformer-impl", row_says),
    ignored("use-mcore-models", row_says),
    ignored("no-gradient-accumulation-fusion", row_says),
    ignored("cross-entropy-*", row_says),
    ignored("ddp-*", no_bearing),
    ignored("no-*", no_bearing),
    ignored("fp8-*", no_bearing),
    ignored("distributed-*", no_step),
    ignored("ckpt-*", of_saving),
    ignored("train-*", no_step),
    ignored("lr-*", no_step),
    ignored("min-lr", no_step),
    ignored("weight-decay*", no_step),
    ignored("clip-grad", no_step),
    ignored("adam-*", no_step),
    ignored("start-weight-decay", no_step),
    ignored("end-weight-decay", no_step),
    ignored("log-*", no_step),
    ignored("eval-*", no_step),
    ignored("exit-*", no_step),
    ignored("wandb*", no_step),
    ignored("tensorboard*", no_step),
    ignored("data-path", no_step),
    ignored("data-cache-path", no_step),
    ignored("mock-data", no_step),
    ignored("split", no_step),
    ignored("tokenizer-*", no_step),
    ignored("vocab-file", no_step),
    ignored("merge-file", no_step),
    ignored("init-method-std", no_step),
    ignored("seed", no_step),
    ignored("num-workers", no_step),
    ignored("manual-gc*", no_step),
    ignored("master_*", no_step),
    ignored("master-*", no_step),
    ignored("node_rank", no_step),
    ignored("node-rank", no_step),
    ignored("rdzv*", no_step),
    ignored("standalone", no_step),
    ignored("timing-*", no_step),
    ignored("profile*", no_step),
    ignored("dataloader-type", no_step),
    ignored("save*", of_saving),
    ignored("load*", "loading is forecast as the framework does it"),
    refused("cp-comm-type.*", "", "expected one kind for all layers"),
    refused("main-grads-dtype", "fp32", grads_in_fp32),
    refused("grad-reduce-in-bf16", "false", grads_in_fp32),
    refused("use-torch-fsdp2", "false", "say FSDP2 by --use-megatron-fsdp, or in torchtitan"),
    refused("recompute-modules*", "", "expected the whole core attention, selective's default"),
};

void finish_sharding(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  const bool fsdp = words.is("megatron-fsdp", "true");
  const std::string strategy = !fsdp ? (words.is("distributed-optimizer", "true") ? "1" : "0")
                               : words.has("strategy") ? words.words.find("strategy")->second.value
                                                       : "3";  // Megatron's default
  words.say("zero", strategy, file);
  const int rest = words.number_or("tp", 1) * words.number_or("cp", 1) * words.number_or("pp", 1);
  const int gpus = context.cluster->gpus(), instances = words.number_or("instances", 1);
  if (gpus % rest != 0 || gpus / rest % instances != 0) {
    words.wrong(instances > 1 ? "instances" : "tp",
                sentence("tp x cp x pp x optimizer instances = ", rest * instances,
                         " do not divide the ", counted(gpus, "GPU"), " asked for"));
    return;
  }
  words.say("dp", gpus / rest, file);
  if (instances > 1) words.say("shard", gpus / rest / instances, words.where("instances"));
}

std::vector<int> even_layers(int layers, int stages) {
  std::vector<int> each(static_cast<std::size_t>(stages), layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++each[static_cast<std::size_t>(i)];
  return each;
}

// Layers per model chunk where the ends were given numbers of their own.
std::vector<int> with_ends(const PlanWords& words, int layers, int stages) {
  std::vector<int> each(static_cast<std::size_t>(stages), 0);
  const auto first = words.number("first-layers"), last = words.number("last-layers");
  const int middle = stages - (first ? 1 : 0) - (last ? 1 : 0);
  const int rest = layers - first.value_or(0) - last.value_or(0);
  if (middle < 1 || rest < 0 || rest % middle != 0) return {};
  for (int& n : each) n = rest / middle;
  if (first) each.front() = *first;
  if (last) each.back() = *last;
  return each;
}

void finish_stages(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  const int pipeline = words.number_or("pp", 1), layers = context.model->layers;
  if (const auto n = words.number("layers-per-chunk")) {
    if (layers % (*n * pipeline) != 0)
      return words.wrong("layers-per-chunk",
                         sentence("the ", layers, " layers do not divide into chunks of ", *n,
                                  " on ", counted(pipeline, "stage")));
    words.say("vpp", layers / (*n * pipeline), words.where("layers-per-chunk"));
  }
  if (pipeline == 1 && words.number_or("vpp", 1) > 1)
    return words.wrong("vpp",
                       "asks for model chunks, which need several pipeline stages; expected "
                       "--pipeline-model-parallel-size above 1");
  std::vector<int> each;
  if (words.has("layout")) {
    const auto read = layers_in_layout(words.words.find("layout")->second.value);
    if (!read || read->size() % static_cast<std::size_t>(pipeline) != 0)
      return words.wrong("layout", sentence("expected a layout of E, t, L and | for a multiple of ",
                                            pipeline, " stages, such as \"Et*3|t*4|t*3L\""));
    each = *read;
    if (static_cast<int>(each.size()) > pipeline)
      words.say("vpp", static_cast<int>(each.size()) / pipeline, words.where("layout"));
  }
  const int stages = pipeline * words.number_or("vpp", 1);
  if (words.has("first-layers") || words.has("last-layers")) {
    const std::string_view which = words.has("first-layers") ? "first-layers" : "last-layers";
    each = with_ends(words, layers, stages);
    if (each.empty())
      return words.wrong(which, sentence("leaves a number of the ", layers,
                                         " layers that does not divide over the other stages"));
  }
  if (words.number_or("vpp", 1) > 1) words.say("schedule", std::string(chunked_schedule), file);
  if (words.number_or("vpp", 1) == 1) words.forget("vpp");
  if (each.empty() || each == even_layers(layers, stages)) return;
  std::string text;
  for (const int n : each) text += sentence(text.empty() ? "" : "/", n);
  words.say("layers", text, file);
}

void finish_recompute(PlanWords& words, const std::string& file) {
  const int n = words.number_or("recompute-layers", 1);
  std::string policy = "none";
  if (words.is("granularity", "selective")) policy = "selective";
  if (words.is("granularity", "full")) {
    const bool block = words.is("method-of-recompute", "block");
    policy = block ? sentence("blocks-", n) : n == 1 ? "full" : sentence("every-", n, "-layers");
  }
  words.say("recompute", policy, words.has("granularity") ? words.where("granularity") : file);
}

// megatron/core/optimizer/optimizer_config.py: moments and masters of other widths than 32 bits
// come with the precision-aware optimizer alone, which keeps the 16 bits of a master that its bf16
// weight lacks. Both moments in 16 bits are a row of ours; the master is of 16 bits with it.
void finish_optimizer(PlanWords& words) {
  constexpr std::string_view flag = "use-precision-aware-optimizer";
  const bool aware = words.is("precision-aware", "true");
  const auto unlike = [&](std::string_view word, const char* key, std::string_view width) {
    return words.has(word) && !words.is(word, width) ? key : nullptr;
  };
  const bool adam = !words.has("optimizer") || words.is("optimizer", "adamw");
  if (aware && adam && words.is("first-moment", "16") && words.is("second-moment", "16")) {
    if (words.is("master", "8"))
      words.unmet.emplace_back("main-params-dtype", "counted as 16 bits");
    const std::string where = words.where("precision-aware");
    words.forget("optimizer");
    words.say("optimizer", "adamw-bf16-states", where);
    return;
  }
  if (aware && !words.is("offload", "optimizer"))
    words.unmet.emplace_back(flag, "counted where both moments have 16 bits; here as without it");
  for (const char* key : {unlike("first-moment", "exp-avg-dtype", "32"),
                          unlike("second-moment", "exp-avg-sq-dtype", "32"),
                          unlike("master", "main-params-dtype", "32")})
    if (key != nullptr)
      words.unmet.emplace_back(
          key, aware ? "counted as fp32" : sentence("needs --", flag, "; counted as fp32"));
}

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  tell_other_size(words, context, "named-layers", "num-layers", context.model->layers);
  tell_other_size(words, context, "named-hidden", "hidden-size", context.model->hidden);
  finish_sharding(words, context, file);
  finish_stages(words, context, file);
  finish_recompute(words, file);
  finish_optimizer(words);
  words.default_to("sp", "false", file);
  words.default_to("offload", "none", file);
  if (words.number_or("cp", 1) > 1 && words.has("cp-comm"))
    words.say("cp-kind", words.words.find("cp-comm")->second.value, words.where("cp-comm"));
  if (context.model->moe) words.default_to("etp", std::to_string(words.number_or("tp", 1)), file);
  words.default_to("precision", words.has("half") ? words.words.find("half")->second.value : "fp32",
                   file);
  const auto each = words.number("processes-per-node"), nodes = words.number("machines");
  if (each && nodes && *each * *nodes != context.cluster->gpus())
    words.wrong("machines",
                sentence(counted(*nodes, "node"), " of ", *each,
                         *each == 1 ? " process" : " processes", *nodes == 1 ? " is" : " are",
                         " not the ", counted(context.cluster->gpus(), "GPU"), " asked for"));
  words.default_to("framework", "megatron-lm", file);
  words.imply("method", "pretrain", file);
}

std::string_view framework(Method, int) { return "megatron-lm"; }

std::vector<std::string> workload_refusals(const Workload& w) {
  Refusals to;
  refuse_megatron_model(to, w.model);
  refuse_if(to, w.model.window_restarts && cuts_sequences(w.model, w.sequence),
            "Megatron-LM's arguments have windows that slide, not chunks");
  refuse_adapters(to, w, "Megatron-LM");
  refuse_other_losses(to, w, "Megatron-LM");
  refuse_precision_except(to, w, "Megatron-LM",
                          {DType::bf16, DType::fp16, DType::fp32, DType::fp8});
  refuse_if(to, spelled(optimizers, w.optimizer->name).empty(),
            sentence("Megatron-LM has no optimizer that is ", w.optimizer->name));
  return to;
}

std::vector<std::string> plan_refusals_of(const Question& q) {
  Refusals to;
  refuse_megatron_plan(to, q);
  return to;
}

void put_sharding(ConfigEntries& e, const ParallelPlan& p) {
  put(e, "use-distributed-optimizer", p.zero_stage > 0);
  if (p.zero_stage >= 2) {
    put(e, "use-megatron-fsdp", true);
    put(e, "data-parallel-sharding-strategy",
        p.zero_stage == 2 ? "optim_grads" : "optim_grads_params");
    put(e, "no-gradient-accumulation-fusion", true);
    put(e, "ckpt-format", "fsdp_dtensor");
  }
  if (p.shard_group) put(e, "num-distributed-optimizer-instances", p.data / *p.shard_group);
}

void put_stages(ConfigEntries& e, const ParallelPlan& p, int layers) {
  put(e, "pipeline-model-parallel-size", p.pipeline);
  const int stages = p.pipeline * p.chunks;
  if (!p.layers_per_stage.empty() || layers % stages != 0) {
    put(e, "pipeline-model-parallel-layout",
        megatron_layout(p.layers_per_stage.empty() ? even_layers(layers, stages)
                                                   : p.layers_per_stage));
  } else if (p.chunks > 1) {
    put(e, "num-virtual-stages-per-pipeline-rank", p.chunks);
  }
}

void put_recompute(ConfigEntries& e, const std::string& name) {
  if (name == "none") return;
  const auto policy = recompute_policy(name);
  if (!policy->row->whole_block) {
    put(e, "recompute-granularity", "selective");
    std::string parts = name.substr(name.find('-') + 1);
    std::replace(parts.begin(), parts.end(), '+', ' ');
    if (policy->modules != 0) put(e, "recompute-modules", parts);
    return;
  }
  const bool block = policy->row->name.starts_with("blocks");
  put(e, "recompute-granularity", "full");
  put(e, "recompute-method", block ? "block" : "uniform");
  put(e, "recompute-num-layers",
      block ? policy->checkpointed_blocks : policy->blocks_per_checkpoint);
}

void put_precision(ConfigEntries& e, DType compute) {
  if (compute == DType::fp32) return;
  put(e, compute == DType::fp16 ? "fp16" : "bf16", true);
  if (compute == DType::fp8) put(e, "fp8-format", "hybrid");
}

ConfigEntries megatron_entries(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const ParallelPlan& p = job.question.plan;
  ConfigEntries e;
  put(e, "use-mcore-models", true);
  put(e, "finetune", w.method == Method::full);
  put_megatron_model(e, w.model, w.sequence);
  put_number(e, "attention-dropout", w.attention_dropout ? 0.1 : 0.0);
  put_number(e, "hidden-dropout", w.hidden_dropout ? 0.1 : 0.0);
  put(e, "micro-batch-size", p.microbatch);
  put(e, "global-batch-size", p.global_batch());
  put(e, "train-iters", job.steps.value_or(500'000));
  if (job.learning_rate) put_number(e, "lr", *job.learning_rate);
  put(e, "optimizer", spelled(optimizers, w.optimizer->name));
  put_precision(e, w.compute);
  put(e, "tensor-model-parallel-size", p.tensor);
  put(e, "sequence-parallel", p.sequence_parallel);
  put(e, "context-parallel-size", p.context);
  if (p.context > 1)
    put(e, "cp-comm-type",
        p.context_kind == ContextKind::ring      ? "p2p"
        : p.context_kind == ContextKind::ulysses ? "a2a"
                                                 : "all_gather");
  put_stages(e, p, w.model.layers);
  if (w.model.moe) {
    put(e, "expert-model-parallel-size", p.expert);
    put(e, "expert-tensor-parallel-size", p.expert_tensor);
  }
  put_sharding(e, p);
  put(e, "overlap-grad-reduce", w.framework.gradients.overlap_reduce);
  put(e, "overlap-param-gather", w.framework.sharding.overlap_gather && p.zero_stage > 0);
  put(e, "tp-comm-overlap", p.async_tensor);
  put_recompute(e, p.recompute);
  // arguments.py:1884: the one asks for the other, whatever the moments' width.
  put(e, "optimizer-cpu-offload", p.offload.optimizer);
  put(e, "use-precision-aware-optimizer", p.offload.optimizer);
  put(e, "attention-backend", "flash");
  put(e, "mock-data", true);
  put(e, "tokenizer-type", "NullTokenizer");
  return e;
}

LaunchFiles write(const LaunchJob& job) {
  LaunchFiles out;
  const ParallelPlan& p = job.question.plan;
  out.files.push_back(
      {"megatron.args", argument_config(megatron_entries(job), launch_heading(job))});
  out.command = torchrun_words(launch_machines(job.question.cluster));
  out.command.emplace_back("\"${MEGATRON:?set it to your Megatron-LM checkout}/pretrain_gpt.py\"");
  out.command.emplace_back("$(grep -v '^#' megatron.args)");
  if (launch_machines(job.question.cluster).nodes > 1)
    out.notes.emplace_back("Run it on every node, with HEAD_NODE set to the first one's name.");
  out.notes.emplace_back(
      "Put your data and tokenizer in place of --mock-data and --tokenizer-type in megatron.args.");
  if (job.question.workload.method == Method::full)
    out.notes.emplace_back("Add --load with the checkpoint to start from to megatron.args.");
  if (job.question.workload.model.position == PositionKind::rope)
    out.notes.emplace_back(
        "Add what a forecast does not ask of a model to megatron.args: --rotary-base (10000 "
        "without), --norm-epsilon and the like.");
  if (!job.learning_rate) out.notes.emplace_back("Add --lr to megatron.args, or give it here.");
  std::vector<Environment> environment;
  // Tensor and context parallelism overlap with one hardware queue only (arguments.py); Megatron's
  // FSDP wants several.
  if ((p.tensor > 1 || p.context > 1) && p.zero_stage < 2)
    environment.push_back({"CUDA_DEVICE_MAX_CONNECTIONS", "1"});
  add_run_script(out, job, environment);
  return out;
}

}  // namespace
}  // namespace megatron

PlanFileFormat megatron_format() {
  return {"Megatron-LM arguments",
          "tensor-model-parallel-size|micro-batch-size|use-distributed-optimizer|num-layers",
          "",
          3,
          megatron::keys,
          megatron::finish};
}

LaunchTarget megatron_target() {
  return {"megatron",
          "arguments of Megatron-LM's pretrain_gpt.py (ZeRO, TP, CP, PP, EP)",
          megatron::framework,
          megatron::workload_refusals,
          megatron::plan_refusals_of,
          megatron::write};
}

}  // namespace shardwise
