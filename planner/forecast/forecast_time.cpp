#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "planner/figures.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/forecast/spread_key.hpp"
#include "planner/forecast/step_record.hpp"
#include "planner/sentence.hpp"
#include "simulator/costs/attention_model.hpp"
#include "simulator/graphs/visited_places.hpp"
#include "simulator/step/timed_step.hpp"

namespace shardwise {
namespace {

bool attends(LayerMixer mixer) {
  return mixer == LayerMixer::attention || mixer == LayerMixer::attention_and_mlp ||
         mixer == LayerMixer::attention_with_mamba_and_mlp;
}

// 12 a d for each key that a token of a layer sees on the average: s / 2 of all, w - w^2 / 2s of a
// window or of the w that an indexer chooses, w / 2 of a chunk, whatever a kernel computes and then
// masks; latent attention's scores and values are of two widths. An indexer's own scores are of all
// keys, and have no gradients. The other mixers of hybrid models have no such product.
double attention_flops_per_token(const Transformer& m, std::int64_t sequence) {
  const auto seen = [&](std::int64_t keys, bool chunks = false) {
    return visible_pairs(sequence, std::min(keys, sequence), true, chunks) /
           static_cast<double>(sequence);
  };
  double flops = 0;
  for (int i = 0; i < m.layers; ++i) {
    if (!attends(m.mixer(i))) continue;
    const bool local = m.sees_window(i);
    const std::int64_t keys = local ? *m.sliding_window : m.indexer ? m.indexer->top_k : sequence;
    const double scores = m.global_attention && !local ? m.global_attention->head_dim : m.head_dim;
    const double values = m.mla ? m.mla->v_head_dim : scores;
    flops += 6.0 * m.heads * (scores + values) * seen(keys, local && m.window_restarts);
    if (m.indexes_tokens(i)) flops += 2.0 * m.indexer->heads * m.indexer->head_dim * seen(sequence);
  }
  return flops;
}

// Model FLOPs of one token, the field's convention: 6 per active weight that a matmul reads (4
// where it is frozen) and 6 L a d s for causal attention (PaLM, arXiv 2204.02311, appendix B,
// halved for the causal mask), of the layers that attend and the keys that they see.
double model_flops_per_token(const Workload& w) {
  const ParameterCount count = parameter_count(w.model);
  double table = static_cast<double>(w.model.tied_embeddings ? 0 : count.embedding);
  if (const auto& own = w.model.layer_embeddings)
    table += static_cast<double>(own->vocab) * own->width * w.model.layers;
  table += static_cast<double>(count.value_embeddings);
  const double weights = static_cast<double>(count.active - count.positions) - table;
  const double per_weight = w.trains_base() ? 6.0 : 4.0;
  return per_weight * weights + attention_flops_per_token(w.model, w.sequence);
}

double peak_flops(const Question& q) {
  double sum = 0;
  for (const NodeGroup& g : q.cluster.groups) {
    const auto rate = g.gpu.rate(q.workload.compute);
    const auto half = g.gpu.rate(DType::bf16) ? g.gpu.rate(DType::bf16) : g.gpu.rate(DType::fp16);
    sum += static_cast<double>(g.gpus()) * (rate ? rate->value : half ? half->value : 0.0);
  }
  return sum;
}

void fill_breakdown(const RankSummary& rank, StepBreakdown& to) {
  for (std::size_t i = 0; i < kWorkKinds; ++i) {
    const auto kind = static_cast<WorkKind>(i);
    const std::string key(name(kind));
    if (rank.busy[i].value > 0) to.compute[key] = seconds(rank.busy[i]);
    if (rank.exposed[i].value == 0) continue;
    if (kind == WorkKind::host)
      to.host += seconds(rank.exposed[i]);
    else if (kind == WorkKind::offload_copy || kind == WorkKind::host_optimizer)
      to.offload += seconds(rank.exposed[i]);
    else
      to.exposed[key] = seconds(rank.exposed[i]);
  }
  to.bubble = seconds(rank.bubble);
}

void fill_critical_path(const PlayedStep& step, std::map<std::string, Seconds>& to) {
  for (const TaskId t : critical_path(step.graph(), step.timeline))
    to[std::string(name(step.graph().work(t)))] += step.timeline[t].end - step.timeline[t].start;
}

}  // namespace

// What if nobody waits for gradients: the step is as long as it would be without reducing them, or
// as the reductions of one step, which must be done before the next one's.
Seconds take_reductions_out(StepCosts& costs) {
  Seconds longest;
  costs.tied.clear();
  for (StageCosts& stage : costs.stages) {
    Seconds sum;
    for (const CollectiveUse& u : stage.collectives)
      if (u.work == WorkKind::reduce_gradients) sum += u.per_step * u.each.time;
    longest = std::max(longest, sum);
    stage.reduce_at_end.reset();
    for (auto& chunk : stage.chunks)
      for (LayerSchedule& l : chunk) l.reduce.reset();
    std::erase_if(stage.collectives,
                  [](const CollectiveUse& u) { return u.work == WorkKind::reduce_gradients; });
  }
  return longest;
}

std::optional<SlowestGpu> slowest_gpu(const Question& q, const StepCosts& costs,
                                      const TimedStep& step, bool varied) {
  const auto ranks = static_cast<std::size_t>(step.ranks_per_stage);
  const std::size_t index = step.busiest_rank;
  const int stage = static_cast<int>(index / ranks);
  const int per_stage = q.plan.gpus() / q.plan.pipeline;
  if (!varied && q.cluster.groups.size() == 1) return std::nullopt;
  int rank = stage * per_stage + static_cast<int>(index % ranks);
  if (ranks == 1) {  // it stands for the slowest of its stage
    int first = stage * per_stage;
    for (const RankPace& p : costs.stages[static_cast<std::size_t>(stage)].paces) {
      if (p.time >= 1) rank = first;
      if (p.time >= 1) break;
      first += p.ranks;
    }
  }
  return SlowestGpu{rank, stage, q.cluster.group_of(rank).gpu.name};
}

// What is taken of a mixture's experts, where it says how full the fullest rank is and nobody else
// has.
std::optional<std::string> told_of_experts(const Question& q) {
  const Workload& w = q.workload;
  if (w.expert_imbalance > 1 && q.plan.expert == 1)
    return "--expert-imbalance changes nothing in this plan: without expert parallelism (ep) every "
           "GPU has all experts.";
  const double fullest = fullest_rank(w, q.plan.expert);
  if (fullest <= std::max(1.0, w.expert_imbalance)) return std::nullopt;
  return sentence("the tokens of experts are taken to differ by ", fixed(w.expert_spread, 2),
                  " of their mean, as those of trained routers do, so that the fullest of ",
                  q.plan.expert, " ranks has ", fixed(fullest, 2),
                  " times the mean: --expert-imbalance 1 forecasts balanced ones.");
}

// The stage that swaps most sets the pace of the end of the step.
void swap_paged_states(const ForecastContext& k, Forecast& f, StepCosts& costs) {
  Bytes most;
  for (const StageForecast& s : f.stages)
    if (s.paged_out > Bytes(0)) most = std::max(most, s.paged);
  if (most == Bytes(0)) return;
  for (StageCosts& stage : costs.stages) k.cost.swap_states(most, stage);
  f.notes.push_back(
      "paged optimizer states find no room on the GPU and cross to the host and back at every "
      "step.");
}

bool forecast_time(const ForecastContext& k, const ForecastOptions& options, Forecast& f) {
  const Question& q = k.question;
  StepCosts costs = k.cost.costs(k.partition);
  swap_paged_states(k, f, costs);
  const Seconds reductions = q.plan.async_data ? take_reductions_out(costs) : Seconds(0);
  const bool varied = options.variation != Variation{.seed = options.variation.seed};
  const bool unfold = options.unfold || varied || q.plan.balance_by_speed;
  const StepTraffic traffic =
      step_traffic(q.plan, q.cluster, k.cost.layout(), k.cost.collectives(), costs);
  std::optional<SimTime> longest;
  if (options.give_up_after) longest = SimTime{} + *options.give_up_after;
  const StepWish wish{unfold, varied ? &options.variation : nullptr,
                      options.critical_path || options.record, longest};
  std::optional<TimedStep> outcome = time_step(q.plan, k.schedule, costs, traffic, wish);
  if (!outcome) return false;
  TimedStep& timed = *outcome;
  f.tasks = timed.tasks;
  const Seconds expected = std::max(reductions, timed.makespan - SimTime{});
  f.slowest = slowest_gpu(q, costs, timed, varied);
  if (q.plan.async_data)
    f.notes.push_back(
        "async-dp is a what-if: nobody waits for the reduction of gradients, so weights are "
        "stepped "
        "with gradients that are one step old; what that does to convergence is not forecast.");
  if (auto told = told_of_experts(q)) f.notes.push_back(*std::move(told));
  fill_breakdown(timed.busiest, f.breakdown);
  f.breakdown.stage =
      static_cast<int>(timed.busiest_rank / static_cast<std::size_t>(timed.ranks_per_stage));
  if (options.critical_path) fill_critical_path(*timed.kept, f.critical_path);
  const SpreadRow spread = spread_of(k.profile.spread.step_time, spread_key(q));
  f.step_time = {Seconds(expected.value * std::min(1.0, spread.low)), expected,
                 Seconds(expected.value * std::max(1.0, spread.high))};
  f.trust = std::max(k.profile.links.nccl.evidence.trust, k.profile.host.evidence.trust);
  for (const NodeGroup& g : q.cluster.groups) {
    const FamilyCalibration& row = k.profile.row(g.gpu.family);
    f.trust = std::max({f.trust, row.gemm.evidence.trust, row.memory.evidence.trust});
  }
  const double tokens = static_cast<double>(q.plan.global_batch()) *
                        static_cast<double>(q.workload.tokens_per_sample());
  f.tokens_per_s = tokens / expected.value;
  const double peak = peak_flops(q);
  f.mfu = peak > 0 ? model_flops_per_token(q.workload) * f.tokens_per_s / peak : 0;
  f.bubble_fraction = f.breakdown.bubble / expected;
  if (options.record) f.record = record_step(k, costs, *std::move(timed.kept));
  return true;
}

}  // namespace shardwise
