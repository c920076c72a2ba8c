#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>

#include "catalog/denial.hpp"
#include "catalog/text_match.hpp"
#include "planner/choice/plan_layouts.hpp"
#include "planner/validation/replay_parts.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {
namespace {

// Sizes of the axes that a record states; the others follow from the number of GPUs.
struct Degrees {
  int data = 1, tensor = 1, context = 1, pipeline = 1;
  int gpus() const { return data * tensor * context * pipeline; }
};

bool model_parallel(const Framework& row) { return row.supports.tensor || row.supports.pipeline; }

// Everything but `data` where the record does not state it.
Part<Degrees> model_degrees(const RunPlan& p, const Framework& row, int gpus) {
  Degrees d{1, p.tp.value_or(1), p.cp.value_or(1), p.pp.value_or(1)};
  if ((p.tp && p.pp) || !model_parallel(row)) return d;
  const int left = p.dp ? gpus / std::max(1, *p.dp * d.gpus()) : 1;
  // What shards gradients over all replicas splits no layer, where nobody says that it does.
  if (!p.tp && !p.pp && left <= 1 && p.zero.value_or(row.defaults.zero_stage) >= 2) return d;
  if (p.tp)
    d.pipeline = std::max(1, left);
  else if (p.pp)
    d.tensor = std::max(1, left);
  else if (gpus > 1 && (!p.dp || left > 1))
    return Skipped{"how the model is split is not stated", "neither TP nor PP"};
  return d;
}

// A box may hold more GPUs than the run used, and a table may print the box.
Part<Degrees> degrees(const ReplayContext& c, const Framework& row, Notes& notes) {
  const RunPlan& p = c.run.plan;
  const bool whole = p.dp && ((p.tp && p.pp) || !model_parallel(row));
  auto stated_gpus = c.run.hardware.gpus;
  if (!stated_gpus && !whole) {
    if (model_parallel(row) || p.zero.value_or(0) > 0)
      return Skipped{"number of GPUs not stated", ""};
    notes.push_back("number of GPUs not stated: one, as replicas hold the same");
    stated_gpus = 1;
  }
  auto part = model_degrees(p, row, stated_gpus.value_or(0));
  if (const auto* skipped = std::get_if<Skipped>(&part)) return *skipped;
  Degrees d = std::get<Degrees>(part);
  const int model = d.gpus();
  if (whole && (!stated_gpus || *p.dp * model != *stated_gpus)) {
    d.data = *p.dp;
    if (stated_gpus)
      notes.push_back("the plan takes " + std::to_string(d.gpus()) + " of the " +
                      std::to_string(*stated_gpus) + " GPUs that are stated");
    return d;
  }
  if (*stated_gpus % model != 0)
    return Skipped{"the plan does not divide the GPUs",
                   std::to_string(*stated_gpus) + " GPUs, model over " + std::to_string(model)};
  d.data = *stated_gpus / model;
  return d;
}

const ScheduleReading* schedule_meant(const ReplayContext& c) {
  if (!c.run.plan.schedule) return nullptr;
  return longest_match(c.reading.schedules, *c.run.plan.schedule);
}

void set_schedule(const ReplayContext& c, const ScheduleReading* row, ParallelPlan& plan,
                  Notes& notes) {
  plan.chunks = plan.pipeline > 1 ? c.run.plan.vpp.value_or(1) : 1;
  plan.schedule = plan.chunks > 1 ? chunked_schedule : usual_schedule;
  if (row == nullptr || plan.pipeline == 1) return;
  const bool chunked = plan.chunks > 1 && !row->chunked.empty();
  if (row->schedule == usual_schedule && plan.chunks > 1) return;  // Megatron calls both 1F1B
  if (row->schedule == chunked_schedule && plan.chunks == 1) {
    notes.push_back("an interleaved schedule without its number of chunks: 1f1b");
    return;
  }
  plan.schedule = chunked ? row->chunked : row->schedule;
  const PipelineSchedule* schedule = find_pipeline_schedule(plan.schedule);
  const auto runs = [&](int chunks) {
    const int microbatches = 2 * plan.pipeline;  // a number that any of them takes
    return schedule != nullptr && !refusal(*schedule, {plan.pipeline, chunks, microbatches});
  };
  if (!c.run.plan.vpp && !runs(plan.chunks) && runs(2)) plan.chunks = 2;  // it has no other form
}

// The number right behind `words` in `text`, as a share of `whole`, at most one.
std::optional<double> share_after(std::string_view text, std::string_view words, double whole) {
  const auto at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string number(text.substr(at + words.size(), 6));
  const double share = std::strtod(number.c_str(), nullptr) / whole;
  return share >= 0 && share <= 1 ? std::optional(share) : std::nullopt;
}

void set_offload(const ReplayContext& c, ParallelPlan& plan, Notes& notes) {
  if (const auto& text = c.run.plan.offload) {
    const OffloadReading* row = longest_match(c.reading.offloads, *text);
    if (row == nullptr)
      notes.push_back("offload \"" + *text + "\" is not understood: none");
    else if (said_of(*text, row->text) == Said::affirmed)
      plan.offload = {row->optimizer,
                      row->parameters || (row->parameters_if_sharded && plan.zero_stage == 3),
                      row->activations};
  }
  if (c.run.training.activation_offloading.value_or(false) ||
      stated(c, &PhraseReading::offload_activations).value_or(false))
    plan.offload.activations = true;
  for (const PhraseReading* phrase : c.phrases) {
    if (!phrase->share_follows && !phrase->offloaded_layers_follow) continue;
    // Of all layers alike, where the framework offloads the first ones: as much is there at once.
    const double whole = phrase->share_follows ? 1 : c.run.model.layers.value_or(1);
    plan.offloaded_share = share_after(c.run.notes, phrase->text, whole).value_or(1);
    plan.offload.activations = plan.offload.activations || phrase->offloaded_layers_follow;
  }
}

// Problems of the batch are notes: the nearest whole number of microbatches is replayed.
Part<int> microbatch(const RunTraining& t, const Framework& row, Notes& notes) {
  if (t.micro_batch) return *t.micro_batch;
  if (!t.global_batch && !row.defaults.microbatch) return Skipped{"no batch size", ""};
  const int usual = t.global_batch ? 1 : *row.defaults.microbatch;
  notes.push_back("micro batch not stated: " + std::to_string(usual));
  return usual;
}

void set_microbatches(const RunTraining& t, ParallelPlan& plan, Notes& notes) {
  const int per_round = plan.data * plan.microbatch;
  if (!t.global_batch) {
    // What fills the stages, where the batch is not told: no more of them are held at one time.
    plan.microbatches = t.grad_accum.value_or(plan.pipeline);
    return;
  }
  const double rounds = static_cast<double>(*t.global_batch) / per_round;
  plan.microbatches = std::max(1, static_cast<int>(std::lround(rounds)));
  if (plan.microbatches * per_round != *t.global_batch)
    notes.push_back("a global batch of " + std::to_string(*t.global_batch) +
                    " is no whole number of rounds of " + std::to_string(per_round) + ": " +
                    std::to_string(plan.global_batch()) + " is replayed");
}

// A library that dispatches tokens to experts on other ranks says that they are spread, over all
// data ranks where nothing says over how many (NVIDIA-NeMo/Automodel
// examples/llm_benchmark/gpt_oss/gptoss_120b_te_deepep.yaml: ep_size 64 on 64 GPUs).
int expert_ranks(const ReplayContext& c, const Degrees& d, Notes& notes) {
  if (c.run.plan.ep) return *c.run.plan.ep;
  if (const auto ranks = stated(c, &PhraseReading::expert_ranks)) return *ranks;
  const bool told = c.run.model.moe && c.run.model.moe->experts;
  if (!told || !stated(c, &PhraseReading::dispatches_once).value_or(false)) return 1;
  const int ranks = std::gcd(*c.run.model.moe->experts, d.data * d.context);
  notes.push_back("expert parallelism not stated, a dispatcher is: " + std::to_string(ranks));
  return ranks;
}

void set_axes(const ReplayContext& c, const Framework& row, const Degrees& d, int experts,
              DType compute, ParallelPlan& plan) {
  const RunPlan& p = c.run.plan;
  plan.data = d.data;
  plan.tensor = d.tensor;
  plan.context = d.context;
  plan.pipeline = d.pipeline;
  plan.context_kind = row.parallel.context_kind;
  plan.expert = experts;
  const bool spread = c.run.model.moe || experts > 1;
  plan.sequence_parallel =
      d.tensor > 1 && p.sp.value_or(sequence_parallel_by_default(row, d.tensor, spread));
  plan.expert_tensor = p.etp.value_or(plan.expert > 1 ? 1 : plan.tensor);
  plan.async_tensor =
      p.async_tp.value_or(plan.sequence_parallel && row.parallel.overlaps_tensor(spread, compute));
  const bool alone = plan.data * plan.context == 1;
  plan.zero_stage = p.zero.value_or(alone ? 0 : row.defaults.zero_stage);
  if (p.hsdp_shard && *p.hsdp_shard < plan.data) plan.shard_group = p.hsdp_shard;
}

}  // namespace

Part<ParallelPlan> replay_plan(const ReplayContext& c, const Framework& row, DType compute,
                               Notes& notes) {
  const ScheduleReading* schedule = schedule_meant(c);
  ParallelPlan plan;
  if (schedule != nullptr && schedule->layer_split) {
    if (!c.run.hardware.gpus) return Skipped{"number of GPUs not stated", ""};
    plan.layer_split = *c.run.hardware.gpus > 1;
    // Each process has cards of its own.
    const int processes = std::max(1, c.run.plan.pp ? *c.run.hardware.gpus / *c.run.plan.pp : 1);
    set_axes(c, row, Degrees{processes, 1, 1, *c.run.hardware.gpus / processes},
             c.run.plan.ep.value_or(1), compute, plan);
  } else {
    auto part = degrees(c, row, notes);
    if (const auto* skipped = std::get_if<Skipped>(&part)) return *skipped;
    const Degrees d = std::get<Degrees>(part);
    set_axes(c, row, d, expert_ranks(c, d, notes), compute, plan);
    if (const auto kind = stated(c, &PhraseReading::context_kind)) plan.context_kind = *kind;
  }
  for (const PhraseReading* phrase : c.phrases) {
    const bool named_only = phrase->where == PhraseReading::Where::script;
    if (!phrase->zero_stage || (named_only && c.run.plan.zero)) continue;
    plan.zero_stage = *phrase->zero_stage;
    break;
  }
  auto batch = microbatch(c.run.training, row, notes);
  if (const auto* skipped = std::get_if<Skipped>(&batch)) return *skipped;
  plan.microbatch = std::get<int>(batch);
  set_schedule(c, schedule, plan, notes);
  set_offload(c, plan, notes);
  set_microbatches(c.run.training, plan, notes);
  return plan;
}

}  // namespace shardwise
