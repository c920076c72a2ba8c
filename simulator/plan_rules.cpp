#include "simulator/plan_rules.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "catalog/names.hpp"
#include "simulator/gradient_compression.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/offload_choice.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/tied_tables.hpp"

namespace shardwise {
namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

using Broken = std::optional<std::string>;

struct Case {
  const Workload& w;
  const ParallelPlan& p;
  const Cluster& c;
};

Broken positive(const Case& k) {
  const std::array<std::pair<const char*, int>, 9> sizes{{{"dp", k.p.data},
                                                          {"tp", k.p.tensor},
                                                          {"cp", k.p.context},
                                                          {"pp", k.p.pipeline},
                                                          {"ep", k.p.expert},
                                                          {"etp", k.p.expert_tensor},
                                                          {"vpp", k.p.chunks},
                                                          {"mbs", k.p.microbatch},
                                                          {"ga", k.p.microbatches}}};
  for (const auto& [key, value] : sizes)
    if (value < 1 || value > most_in_a_plan)
      return std::string(key) + " must be a positive number of ordinary size, got " + text(value);
  if (k.w.sequence < 1 || k.w.sequence > most_in_a_step)
    return "seq must be a positive number of ordinary size, got " + text(k.w.sequence);
  if (k.p.zero_stage < 0 || k.p.zero_stage > 3)
    return "zero must be 0, 1, 2 or 3, got " + text(k.p.zero_stage);
  return std::nullopt;
}

Broken multiplies_out(const Case& k) {
  const int product = k.p.gpus();
  if (product == k.c.gpus()) return std::nullopt;
  const bool counted = product < std::numeric_limits<int>::max();
  return "the plan is for dp " + text(k.p.data) + " x tp " + text(k.p.tensor) + " x cp " +
         text(k.p.context) + " x pp " + text(k.p.pipeline) +
         (counted ? " = " + text(product) + (product == 1 ? " GPU" : " GPUs")
                  : ", more GPUs than can be counted") +
         ", the cluster has " + text(k.c.gpus());
}

Broken steps_over_so_many(const Case& k) {
  if (k.p.global_batch() <= most_in_a_step) return std::nullopt;
  return "dp " + text(k.p.data) + " x mbs " + text(k.p.microbatch) + " x ga " +
         text(k.p.microbatches) + " is more than the " + text(most_in_a_step) +
         " sequences that a step may have";
}

Broken tensor_divides(const Case& k) {
  if (k.p.tensor == 1) return std::nullopt;
  if (auto refusal = tensor_refusal(k.w.model, k.p.tensor)) return refusal;
  const std::int64_t parts = std::int64_t{k.p.tensor} * k.p.context;
  if (k.p.sequence_parallel && k.w.sequence % parts != 0)
    return "sequence parallelism needs the sequence length " + text(k.w.sequence) +
           " to be a multiple of tp x cp = " + text(parts);
  return std::nullopt;
}

Broken context_divides(const Case& k) {
  if (k.w.model.convolution && k.p.context > 1)
    return "cp " + text(k.p.context) +
           " splits the sequences that its convolutions read, whose exchange is not modelled";
  if (k.w.model.mamba && k.w.model.mamba->step_rank && k.p.context > 1)
    return "cp " + text(k.p.context) +
           " splits the sequences that its Mamba-1 layers scan, whose exchange is not modelled";
  if (k.w.sequence % k.p.context != 0)
    return "cp " + text(k.p.context) + " must divide the sequence length " + text(k.w.sequence);
  return std::nullopt;
}

// Ulysses gives each context rank whole heads; of key/value heads a rank may have a copy (DeepSpeed
// @016d2f7067 deepspeed/runtime/sequence_parallel/ulysses_sp.py, UlyssesSPAttentionHF).
Broken heads_are_dealt(const Case& k) {
  if (k.p.context == 1 || k.p.context_kind != ContextKind::ulysses) return std::nullopt;
  const Transformer& m = k.w.model;
  const std::int64_t ranks = std::int64_t{k.p.tensor} * k.p.context;
  if (m.heads % ranks != 0)
    return "Ulysses deals out whole heads: tp x cp = " + text(ranks) + " must divide the " +
           text(m.heads) + " attention heads";
  if (m.kv_heads % ranks != 0 && ranks % m.kv_heads != 0)
    return "Ulysses deals out whole heads: tp x cp = " + text(ranks) + " and the " +
           text(m.kv_heads) + " key/value heads must divide one another";
  return std::nullopt;
}

Broken stages_hold_layers(const Case& k) {
  if (k.p.pipeline > 1 &&
      (k.w.model.shared_keys || k.w.model.layer_embeddings || k.w.model.value_embeddings))
    return "pp " + text(k.p.pipeline) +
           " cuts off layers from what the first stage makes for all of them (keys and values, or "
           "embeddings of each layer), whose way between stages is not modelled";
  const std::int64_t chunks = std::int64_t{k.p.pipeline} * k.p.chunks;
  if (chunks > most_model_chunks(k.w.model))
    return "pp x vpp = " + text(chunks) + " model chunks are far more than the " +
           text(k.w.model.layers) + " layers";
  if (k.p.layers_per_stage.empty()) return std::nullopt;
  // DualPipe has half as many model chunks, each of them on two stages.
  const PipelineSchedule* schedule = find_pipeline_schedule(k.p.schedule_row());
  const int parts = schedule == nullptr
                        ? static_cast<int>(chunks)
                        : schedule->model_chunks({k.p.pipeline, k.p.chunks, k.p.microbatches});
  const std::vector<int>& layers = k.p.layers_per_stage;
  const std::int64_t total = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  const bool counts = std::all_of(layers.begin(), layers.end(), [](int n) { return n >= 0; });
  if (total != k.w.model.layers || static_cast<int>(layers.size()) != parts || !counts)
    return "layers per stage must be " + text(parts) + " numbers from 0 that sum to " +
           text(k.w.model.layers);
  return std::nullopt;
}

Broken schedule_runs(const Case& k) {
  const PipelineSchedule* schedule = find_pipeline_schedule(k.p.schedule_row());
  if (schedule == nullptr)
    return "unknown pipeline schedule '" + k.p.schedule +
           "'; known: " + joined(names_in(pipeline_schedules()));
  if (k.p.pipeline == 1 && k.p.chunks > 1)
    return "vpp " + text(k.p.chunks) + " is of pipeline stages: it needs pp=2 or more";
  return refusal(*schedule, {k.p.pipeline, k.p.chunks, k.p.microbatches});
}

Broken experts_divide(const Case& k) {
  if (!k.w.model.moe && k.p.expert > 1)
    return "ep " + text(k.p.expert) + " needs a mixture-of-experts model";
  if (!k.w.model.moe) return std::nullopt;
  if (k.w.model.moe->experts % k.p.expert != 0)
    return "ep " + text(k.p.expert) + " must divide the " + text(k.w.model.moe->experts) +
           " experts";
  // Of three numbers up to a million each: 1e18 at most.
  const std::int64_t inside = std::int64_t{k.p.data} * k.p.context * k.p.tensor;
  const std::int64_t split = std::int64_t{k.p.expert} * k.p.expert_tensor;
  if (inside % split != 0)
    return "ep x etp = " + text(split) + " must divide dp x cp x tp = " + text(inside);
  return std::nullopt;
}

// Without it every tensor rank would send each token to its experts (Megatron-LM @d98e8a64dd
// megatron/core/transformer/moe/moe_layer.py:636-640 refuses to train so). Frameworks that drop
// what ranks have twice (DeepSpeed deepspeed/moe/mappings.py) are not modelled.
Broken experts_split_sequences(const Case& k) {
  if (!k.w.model.moe || k.p.tensor == 1 || k.p.sequence_parallel) return std::nullopt;
  return "experts beside tp " + text(k.p.tensor) +
         " need sequences split over the tensor ranks, else each of them would send every token: "
         "sp=true";
}

Broken shards_divide(const Case& k) {
  if (!k.p.shard_group) return std::nullopt;
  if (*k.p.shard_group < 1 || k.p.data % *k.p.shard_group != 0)
    return "the shard group of " + text(*k.p.shard_group) + " must divide dp " + text(k.p.data);
  return std::nullopt;
}

// More microbatches on some ranks than on others: no collective may belong to a microbatch.
Broken batch_is_divisible(const Case& k) {
  const bool per_microbatch =
      k.p.zero_stage >= 3 ||
      (k.p.zero_stage == 2 && k.w.framework.gradients.reduces_every_microbatch);
  if (k.p.balance_by_speed && k.p.pipeline > 1)
    return "balance=speed divides microbatches over data ranks, which a pipeline cannot; give "
           "faster stages more layers (layers=...)";
  if (k.p.balance_by_speed && (k.p.context > 1 || k.p.expert > 1))
    return "balance=speed does not go with cp or ep: their collectives belong to a microbatch";
  if (k.p.balance_by_speed && per_microbatch)
    return "balance=speed needs gradients and weights to be exchanged once per step: zero 0 or 1";
  if (k.p.async_data && k.p.zero_stage >= 2)
    return "async-dp needs whole gradients and weights on every rank: zero 0 or 1";
  return std::nullopt;
}

Broken compression_known(const Case& k) {
  if (k.p.compression == "none") return std::nullopt;
  if (!gradient_compression(k.p.compression))
    return "unknown gradient compression '" + k.p.compression +
           "'; known: none, bf16, fp8, 1bit, powersgd-R";
  if (k.p.zero_stage >= 1)
    return "gradient compression replaces the all-reduce of whole gradients: zero 0";
  return std::nullopt;
}

Broken swaps_what_is_offloaded(const Case& k) {
  if (!k.p.nvme || k.p.offload.optimizer) return std::nullopt;
  return "nvme=true says where an offloaded optimizer lies: it needs offload=optimizer";
}

// What moves from the GPU's half of one memory to the CPU's takes the same room there.
Broken offloads_to_other_memory(const Case& k) {
  const bool to_host = k.p.offload.parameters || (k.p.offload.optimizer && !k.p.nvme);
  if (!to_host) return std::nullopt;
  for (const NodeGroup& g : k.c.groups)
    if (g.gpu.shares_host_memory)
      return "offload=" + std::string(offload_name(k.p.offload)) + " frees nothing: the CPU of " +
             g.gpu.name + " has no memory but the GPU's";
  return std::nullopt;
}

// One process moves what its own cards hold.
Broken splits_within_a_node(const Case& k) {
  if (!k.p.layer_split) return std::nullopt;
  for (const NodeGroup& g : k.c.groups)
    if (k.c.nodes() > 1 && g.gpus_per_node % k.p.pipeline != 0)
      return "split=true deals a model's layers to the cards of one process, within a node: pp "
             "must divide the " +
             text(g.gpus_per_node) + " of a node, got " + text(k.p.pipeline);
  return std::nullopt;
}

Broken says_what_it_shards(const Case& k) {
  const bool spread = k.p.data > 1 || k.p.context > 1;
  if (k.p.zero_stage > 0 || !spread || !k.w.framework.sharding.bf16_shards_at_stage_0)
    return std::nullopt;
  if (k.w.compute != DType::bf16) return std::nullopt;
  return k.w.framework.name + " shards optimizer states in bf16 at ZeRO stage 0 too: zero=1";
}

Broken framework_runs(const Case& k) {
  const Framework& f = k.w.framework;
  if (auto refusal = method_refusal(f, k.w.method)) return refusal;
  if (k.p.tensor > 1 && !f.supports.tensor) return f.name + " has no tensor parallelism";
  if (k.p.pipeline > 1 && !f.supports.pipeline && !k.p.layer_split)
    return f.name + " has no pipeline parallelism";
  const bool tied = shares_table(k.w);
  if (k.p.pipeline > 1 && !k.p.layer_split && tied && !f.parallel.ties_over_stages)
    return f.name + " does not tie embeddings over pipeline stages";
  if (k.p.context > 1 && !f.supports.context) return f.name + " has no context parallelism";
  if (k.p.expert > 1 && !f.supports.expert) return f.name + " has no expert parallelism";
  if (k.p.zero_stage > f.supports.max_zero_stage)
    return f.name + " shards up to ZeRO stage " + text(f.supports.max_zero_stage) +
           ", the plan asks for " + text(k.p.zero_stage);
  return std::nullopt;
}

Broken accumulates(const Case& k) {
  if (k.w.framework.gradients.life != GradientLife::in_backward || k.p.microbatches == 1)
    return std::nullopt;
  const std::string who(k.w.optimizer->in_backward ? k.w.optimizer->name
                                                   : std::string_view(k.w.framework.name));
  return who +
         " steps every gradient as soon as it is made, which leaves none to accumulate: ga must "
         "be 1, got " +
         text(k.p.microbatches);
}

// transformers refuses them where its processes are several (trainer_optimizer.py,
// _setup_low_rank_optimizer: "does not support DDP at this time"); cards among which one process
// deals its layers are not.
Broken steps_in_one_process(const Case& k) {
  if (!k.w.optimizer->one_process) return std::nullopt;
  const std::array<std::pair<const char*, int>, 4> axes{
      {{"dp", k.p.data},
       {"cp", k.p.context},
       {"tp", k.p.tensor},
       {"pp", k.p.layer_split ? 1 : k.p.pipeline}}};
  for (const auto& [axis, size] : axes)
    if (size > 1)
      return std::string(k.w.optimizer->name) + " steps in one process: " + axis +
             " must be 1, got " + text(size) + "; name one GPU, or another --optimizer";
  return std::nullopt;
}

Broken format_exists(const Case& k) {
  for (const NodeGroup& g : k.c.groups) {
    const bool narrow = bytes_per_element(k.w.compute) < 2.0;
    if (narrow && !g.gpu.rate(k.w.compute))
      return g.gpu.name + " has no " + std::string(name(k.w.compute)) + " matrix units";
  }
  return std::nullopt;
}

Broken recompute_known(const Case& k) {
  const Result<RecomputePolicy> policy = recompute_policy(k.p.recompute);
  if (policy) return std::nullopt;
  return policy.error().front().what;
}

}  // namespace

std::int64_t most_model_chunks(const Transformer& model) { return std::int64_t{8} * model.layers; }

std::optional<std::string> tensor_refusal(const Transformer& m, int tensor) {
  const auto must_divide = [&](int n, const char* what) {
    return "tp " + text(tensor) + " must divide the " + text(n) + what;
  };
  if (m.heads % tensor != 0) return must_divide(m.heads, " attention heads");
  if (m.kv_heads % tensor != 0 && tensor % m.kv_heads != 0)
    return "tp " + text(tensor) + " and the " + text(m.kv_heads) +
           " key/value heads must divide one another";
  if (m.ffn % tensor != 0)
    return "tp " + text(tensor) + " must divide the MLP width " + text(m.ffn);
  if (m.mamba && m.mamba->step_rank && tensor > 1)
    return "tp " + text(tensor) + " would cut its Mamba-1 layers, which is not modelled";
  if (m.altup && tensor > 1)
    return "tp " + text(tensor) + " would cut its alternating updates, which is not modelled";
  if (m.lightning && m.lightning->heads % tensor != 0)
    return must_divide(m.lightning->heads, " heads of its lightning attention");
  if (m.mamba && m.mamba->groups % tensor != 0)
    return must_divide(m.mamba->groups, " groups of its Mamba layers");
  if (m.delta && m.delta->key_heads % tensor != 0)
    return must_divide(m.delta->key_heads, " key heads of its DeltaNet layers");
  if (m.convolution && m.hidden % tensor != 0)
    return must_divide(m.hidden, " channels of its convolutions");
  return std::nullopt;
}

Problems plan_problems(const Workload& workload, const ParallelPlan& plan, const Cluster& cluster) {
  const Case k{workload, plan, cluster};
  Problems problems;
  if (const Broken broken = positive(k)) return {Problem{ProblemKind::request, "--plan", *broken}};
  constexpr std::array rules{
      multiplies_out,          steps_over_so_many,   tensor_divides,
      context_divides,         heads_are_dealt,      stages_hold_layers,
      schedule_runs,           experts_divide,       experts_split_sequences,
      shards_divide,           batch_is_divisible,   compression_known,
      swaps_what_is_offloaded, splits_within_a_node, says_what_it_shards,
      framework_runs,          accumulates,          steps_in_one_process,
      format_exists,           recompute_known,      offloads_to_other_memory};
  for (const auto rule : rules)
    if (const Broken broken = rule(k))
      problems.push_back({ProblemKind::request, "--plan", *broken});
  return problems;
}

}  // namespace shardwise
