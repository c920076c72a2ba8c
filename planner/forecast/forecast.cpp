#include "planner/forecast/forecast.hpp"

#include <algorithm>
#include <memory>

#include "planner/forecast/best_recompute.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/sentence.hpp"
#include "simulator/packed_weights.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

// Which blocks of each stage run what again, equal ones together, in order of first appearance.
std::vector<StageRecompute> told(const ModelPartition& partition) {
  std::vector<StageRecompute> list;
  for (std::size_t stage = 0; stage < partition.stages.size(); ++stage) {
    std::vector<const LayerDefinition*> known;
    const std::size_t first = list.size();
    for (const ModelChunk& chunk : partition.stages[stage])
      for (const ChunkLayer& layer : chunk.layers) {
        const LayerDefinition* d = layer.definition;
        if (d->role != LayerRole::block) continue;
        const auto seen = std::find(known.begin(), known.end(), d) - known.begin();
        const auto at = static_cast<std::size_t>(seen);
        if (at == known.size()) {
          known.push_back(d);
          StageRecompute& one = list.emplace_back();
          one.stage = static_cast<int>(stage);
          for (std::size_t i = 0; i < d->chosen.size(); ++i)
            if (d->chosen[i]) one.operators.emplace_back(d->graph.operators[i].name);
        }
        ++list[first + at].blocks;
      }
  }
  return list;
}

}  // namespace

Result<Forecast> forecast_under(const Question& q, const Profile& profile,
                                const RecomputePolicy& policy, const ForecastOptions& options) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(q.plan.schedule_row());
  // A play of another 16-bit format has the same tensors (played_alike), not the same kernels.
  const bool played =
      options.plays && !policy.chosen && options.plays->compute == q.workload.compute;
  const bool may_swap = options.time && q.workload.optimizer->paged;
  const bool plays = options.memory || may_swap;  // which may outlive what is known
  KnownCosts known = options.known != nullptr ? *options.known : KnownCosts();
  if (plays) known = {known.collectives, nullptr, nullptr};
  const auto partition = played ? options.plays->partition
                                : std::make_shared<const ModelPartition>(partition_model(
                                      q.workload, q.plan, schedule, policy, known.layers));
  const ForecastContext context{
      q,
      profile,
      schedule,
      policy,
      partition,
      *partition,
      CostModel(q.workload, q.plan, q.cluster, profile, known.collectives, known.times)};
  Forecast f;
  if (plays) forecast_memory(context, options, f);
  if (options.time && !forecast_time(context, options, f))
    return Problem{ProblemKind::request, "the step",
                   "takes longer than the 106 days that can be forecast: ask for fewer tokens in "
                   "it (--seq, --batch, mbs and ga of a plan), or for more GPUs"};
  if (policy.chosen) f.recompute = told(context.partition);
  return f;
}

std::optional<std::string> told_of_whole_weights(const Question& q) {
  const std::string_view why = why_frozen_stay_whole(q.workload, q.plan);
  if (why.empty()) return std::nullopt;
  return sentence(why, "; forecast as if they were like any other weights.");
}

std::optional<std::string> told_of_delta_rule(const Question& q) {
  const Workload& w = q.workload;
  if (!w.model.delta || w.model.delta->gate_rank || !w.framework.layers.runs_transformers ||
      w.framework.layers.delta_rule != DeltaRule::kernels)
    return std::nullopt;
  return "flash-linear-attention is taken to be installed: without it transformers runs the gated "
         "delta rule by PyTorch's operators, whose backward pass grows with the square of the "
         "sequence.";
}

std::optional<std::string> told_of_empty_stages(const Question& q) {
  const ParallelPlan& p = q.plan;
  const int layers = q.workload.model.layers;
  if (p.pipeline == 1 || (p.layers_per_stage.empty() && p.pipeline * p.chunks <= layers))
    return std::nullopt;
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const PipelineShape shape{p.pipeline, p.chunks, p.microbatches};
  const int chunks = schedule.model_chunks(shape);
  const std::vector<int> share = blocks_per_chunk(layers, chunks, p.layers_per_stage);
  int empty = 0;
  for (int stage = 0; stage < p.pipeline; ++stage) {
    bool holds = false;  // layers, the embedding or the head
    for (int k = 0; k < p.chunks; ++k) {
      const int c = schedule.model_chunk(shape, stage, k);
      holds = holds || share[static_cast<std::size_t>(c)] > 0 || c == 0 || c == chunks - 1;
    }
    empty += holds ? 0 : 1;
  }
  if (empty == 0) return std::nullopt;
  return sentence(empty, " of ", p.pipeline, " stages ", empty == 1 ? "holds" : "hold",
                  " no part of the model and only ", empty == 1 ? "passes" : "pass", " on what ",
                  empty == 1 ? "it gets" : "they get", ": at most ", layers,
                  " stages, one for each of its layers, leave none idle.");
}

Result<Forecast> forecast(const Question& q, const Profile& profile,
                          const ForecastOptions& options) {
  const Problems problems = plan_problems(q.workload, q.plan, q.cluster);
  if (!problems.empty()) return problems;
  RecomputePolicy policy = *recompute_policy(q.plan.recompute);
  ForecastOptions wanted = options;
  if (policy.row->searched) {
    policy.chosen = options.chosen ? options.chosen : best_recompute(q, profile, policy);
    if (!options.chosen) wanted.plays = nullptr;
  }
  auto f = forecast_under(q, profile, policy, wanted);
  if (!f) return f;
  if (policy.row->searched) f->chosen = policy.chosen;
  if (const auto note = told_of_whole_weights(q)) f->notes.push_back(*note);
  if (auto note = told_of_empty_stages(q)) f->notes.push_back(*std::move(note));
  if (auto note = told_of_delta_rule(q)) f->notes.push_back(*std::move(note));
  return f;
}

}  // namespace shardwise
