// PyTorch FSDP2 by torchrun: fsdp2.json, the arguments of fully_shard and of the training loop, and
// fsdp2_train.py, a whole small loop that applies them (fsdp2_script.cpp).
//
// Names: torch 2.15 torch/distributed/fsdp/_fully_shard: fully_shard, MixedPrecisionPolicy,
// CPUOffloadPolicy. Stage 3 reshards after forward, stage 2 keeps what was gathered.
#include "planner/launch/config_text.hpp"
#include "planner/launch/formats.hpp"
#include "planner/launch/fsdp2_script.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/launch/targets.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace torchrun_fsdp2 {
namespace {

constexpr Meaning stages[] = {{"true", "3"}, {"false", "2"}};
constexpr Meaning offloads[] = {{"true", "params+optimizer"}, {"false", "none"}};
constexpr Meaning dtypes[] = {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}};

constexpr Meaning methods[] = {{"pretrain", "pretrain"}, {"full", "full"}};

constexpr PlanKey keys[] = {
    says_choice("fully_shard.reshard_after_forward", "reshard", stages),
    says_choice("fully_shard.cpu_offload", "offload", offloads),
    says_choice("fully_shard.param_dtype", "precision", dtypes),
    says_integer("mesh.replicate", "replicate"),
    says_integer("mesh.shard", "sharded"),
    says_integer("training.sequence", "sequence"),
    says_integer("training.microbatch", "mbs"),
    says_integer("training.accumulation", "ga"),
    says_choice("training.recompute_blocks", "recompute", full_or_none),
    says_number("training.learning_rate", "learning-rate"),
    says_choice("training.method", "method", methods),
    names_model("training.model", named_model),
    ignored("training.steps", no_step),
    ignored("fully_shard.reduce_dtype", row_says),
};

void finish(PlanWords& words, const PlanFileContext& context, const std::string& file) {
  tell_other_model(words, context, "training.model");
  const int replicate = words.number_or("replicate", 1), sharded = words.number_or("sharded", 1);
  words.say("dp", replicate * sharded, words.where("sharded"));
  words.say("zero", sharded * replicate > 1 ? (words.is("reshard", "2") ? 2 : 3) : 0,
            words.where("reshard"));
  if (replicate > 1) words.say("shard", sharded, words.where("replicate"));
  words.default_to("framework", "pytorch-fsdp2", file);
  words.default_to("optimizer", "adamw", file);
}

std::string_view framework(Method, int) { return "pytorch-fsdp2"; }

std::vector<std::string> workload_refusals(const Workload& w) {
  Refusals to;
  refuse_adapters(to, w, "the loop written here");
  refuse_other_losses(to, w, "the loop written here");
  refuse_precision_except(to, w, "the loop written here", {DType::bf16, DType::fp32});
  refuse_if(to, w.model.vision.has_value(),
            "the loop written here loads language models only, and feeds no images");
  refuse_if(to, w.optimizer->name != "adamw",
            sentence("the loop written here steps AdamW, not ", w.optimizer->name));
  return to;
}

std::vector<std::string> plan_refusals_of(const Question& q) {
  const ParallelPlan& p = q.plan;
  Refusals to;
  refuse_model_parallel(to, p, "plain fully_shard");
  refuse_recompute_except(to, p, "the loop written here", {"none", "full"});
  refuse_if(
      to, p.zero_stage < 2 && p.data > 1,
      "fully_shard shards gradients and weights: zero=2 or zero=3 (DDP: --target accelerate)");
  refuse_if(to, p.offload.parameters != p.offload.optimizer,
            "CPUOffloadPolicy moves parameters, gradients and optimizer states together, or none");
  refuse_if(to, p.offload.activations, "activations are not offloaded here");
  return to;
}

std::string_view torch_dtype(DType d) { return d == DType::fp32 ? "float32" : "bfloat16"; }

LaunchFiles write(const LaunchJob& job) {
  const Workload& w = job.question.workload;
  const ParallelPlan& p = job.question.plan;
  const int sharded = p.shard_group.value_or(p.data);
  ConfigEntries e;
  put(e, "mesh.replicate", p.data / sharded);
  put(e, "mesh.shard", sharded);
  put(e, "fully_shard.reshard_after_forward", p.zero_stage != 2);
  put(e, "fully_shard.param_dtype", torch_dtype(w.compute));
  put(e, "fully_shard.reduce_dtype",
      torch_dtype(w.compute == DType::fp32 ? DType::fp32 : w.framework.gradients.reduce_dtype));
  put(e, "fully_shard.cpu_offload", p.offload.parameters);
  put(e, "training.model", job.model);
  put(e, "training.method", name(w.method));
  put(e, "training.sequence", w.sequence);
  put(e, "training.microbatch", p.microbatch);
  put(e, "training.accumulation", p.microbatches);
  put(e, "training.recompute_blocks", p.recompute == "full");
  if (job.learning_rate) put_number(e, "training.learning_rate", *job.learning_rate);
  put(e, "training.steps", job.steps.value_or(10));

  LaunchFiles out;
  out.files.push_back({"fsdp2.json", json_config(e)});
  out.files.push_back({"fsdp2_train.py", std::string(fsdp2_script())});
  out.command = torchrun_words(launch_machines(job.question.cluster));
  out.command.emplace_back("fsdp2_train.py");
  if (launch_machines(job.question.cluster).nodes > 1)
    out.notes.emplace_back("Run it on every node, with HEAD_NODE set to the first one's name.");
  out.notes.emplace_back(
      "fsdp2_train.py trains on random tokens and prints time and memory of each step: put your "
      "data into batches().");
  if (!job.learning_rate && w.method == Method::full)
    out.notes.emplace_back(
        "Set training.learning_rate in fsdp2.json, or give --learning-rate here: without it the "
        "loop takes 1e-4.");
  add_run_script(out, job, {});
  return out;
}

}  // namespace
}  // namespace torchrun_fsdp2

PlanFileFormat fully_shard_format() {
  return {"FSDP2 settings", "fully_shard", "", 3, torchrun_fsdp2::keys, torchrun_fsdp2::finish};
}

LaunchTarget torchrun_target() {
  return {"torchrun",
          "torchrun with a small FSDP2 training loop (ZeRO-2, ZeRO-3, HSDP)",
          torchrun_fsdp2::framework,
          torchrun_fsdp2::workload_refusals,
          torchrun_fsdp2::plan_refusals_of,
          torchrun_fsdp2::write};
}

}  // namespace shardwise
