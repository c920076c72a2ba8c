#include "planner/forecast/schedule_comparison.hpp"

#include <algorithm>
#include <set>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/sentence.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {
namespace {

PipelineShape shape_of(const ParallelPlan& p) { return {p.pipeline, p.chunks, p.microbatches}; }

const PipelineSchedule& row_of(const ParallelPlan& p) {
  return *find_pipeline_schedule(p.schedule_row());
}

Bytes worst_peak(const Forecast& f) {
  Bytes most;
  for (const StageForecast& s : f.stages) most = std::max(most, s.peak.device);
  return most;
}

class Comparison {
 public:
  Comparison(const ResolvedRequest& r, Workload workload, ParallelPlan asked)
      : r_(r), workload_(std::move(workload)), asked_(std::move(asked)) {}

  ScheduleRow row(const PipelineSchedule& schedule, int chunks) const {
    ScheduleRow row{std::string(schedule.name), chunks, std::nullopt, "", std::nullopt};
    const ParallelPlan plan = with(schedule, chunks, asked_.microbatch);
    if (const auto reason = refusal(schedule, shape_of(plan)))
      row.refused = *reason;
    else if (const auto f = played(plan, true))
      row.as_asked = {plan, *f};
    else
      row.refused = f.error().front().what;
    return row;
  }

  // The fastest of every microbatch with the recomputations that fit.
  std::optional<PlayedPlan> within(const PipelineSchedule& schedule, int chunks,
                                   Bytes budget) const {
    std::optional<PlayedPlan> best;
    const int share = asked_.microbatch * asked_.microbatches;
    std::set<int> sizes{asked_.microbatch};
    for (int size = 1; size <= std::min(share, 64); size *= 2)
      if (share % size == 0) sizes.insert(size);
    for (const int size : sizes) {
      const ParallelPlan plan = with(schedule, chunks, size);
      if (refusal(schedule, shape_of(plan))) continue;
      for (const std::string& policy : fitting_policies(plan, budget)) {
        ParallelPlan one = plan;
        one.recompute = policy;
        auto f = played(one, true);
        if (!f || worst_peak(*f) > budget) continue;
        if (!best || f->step_time.expected < best->forecast.step_time.expected)
          best = {std::move(one), *std::move(f)};
      }
    }
    return best;
  }

  Result<Forecast> played(const ParallelPlan& plan, bool time) const {
    return forecast({workload_, plan, r_.clusters.front()}, r_.facts->profile, {.time = time});
  }

 private:
  ParallelPlan with(const PipelineSchedule& schedule, int chunks, int microbatch) const {
    ParallelPlan plan = asked_;
    plan.schedule = schedule.name;
    plan.chunks = chunks;
    plan.microbatches = asked_.microbatch * asked_.microbatches / microbatch;
    plan.microbatch = microbatch;
    plan.layers_per_stage = layers_under(asked_, plan);
    return plan;
  }

  bool fits(ParallelPlan plan, const std::string& policy, Bytes budget) const {
    plan.recompute = policy;
    const auto f = played(plan, false);
    return f && worst_peak(*f) <= budget;
  }

  // What is worth timing: nothing re-run if that fits; else the selective policies, and full for as
  // few blocks as it takes. A policy that was asked for is the only one.
  std::vector<std::string> fitting_policies(const ParallelPlan& plan, Bytes budget) const {
    if (r_.asked.recompute) return {*r_.asked.recompute};
    if (fits(plan, "none", budget)) return {"none"};
    std::vector<std::string> policies;
    for (const char* policy : {"selective", "selective-op"})
      if (fits(plan, policy, budget)) policies.emplace_back(policy);
    if (!fits(plan, "full", budget)) return policies;
    int few = 1, enough = workload_.model.layers;
    while (few < enough) {
      const int middle = (few + enough) / 2;
      if (fits(plan, sentence("blocks-", middle), budget))
        enough = middle;
      else
        few = middle + 1;
    }
    policies.push_back(sentence("blocks-", enough));
    return policies;
  }

  const ResolvedRequest& r_;
  Workload workload_;
  ParallelPlan asked_;
};

// Chunks per stage to show a schedule with: all that it runs of 1, 2, 4 and what was asked.
std::vector<int> chunks_to_show(const PipelineSchedule& schedule, const ParallelPlan& asked,
                                int layers) {
  std::vector<int> chunks;
  for (const int v : std::set<int>{1, 2, 4, asked.chunks}) {
    ParallelPlan plan = asked;
    plan.chunks = v;
    const bool asked_for = v == asked.chunks && schedule.name == asked.schedule;
    if (!refusal(schedule, shape_of(plan)) && (asked_for || v * asked.pipeline <= layers))
      chunks.push_back(v);
  }
  // One that runs none of them is shown with its reason: that for the chunks it would need.
  if (chunks.empty()) chunks.push_back(schedule.chunks_per_stage.value_or(2));
  return chunks;
}

}  // namespace

std::vector<int> layers_under(const ParallelPlan& asked, const ParallelPlan& changed) {
  if (asked.layers_per_stage.empty()) return {};
  const PipelineSchedule& from = row_of(asked);
  const PipelineSchedule& to = row_of(changed);
  const int chunks = to.model_chunks(shape_of(changed));
  if (static_cast<int>(asked.layers_per_stage.size()) == chunks && asked.chunks == changed.chunks)
    return asked.layers_per_stage;
  std::vector<int> layers(static_cast<std::size_t>(chunks), 0);
  for (int stage = 0; stage < asked.pipeline; ++stage) {
    int own = 0;
    // A schedule that holds the model twice counts each of its chunks on two stages.
    for (int k = 0; k < asked.chunks / from.weight_copies; ++k)
      own += asked.layers_per_stage[static_cast<std::size_t>(
          from.model_chunk(shape_of(asked), stage, k))];
    const int parts = changed.chunks / to.weight_copies;
    for (int k = 0; k < parts; ++k)
      layers[static_cast<std::size_t>(to.model_chunk(shape_of(changed), stage, k))] =
          own / parts + (k < own % parts ? 1 : 0);
  }
  return layers;
}

Result<ScheduleComparison> compare_schedules(const ResolvedRequest& r, const std::string& text,
                                             std::optional<Bytes> budget) {
  const Cluster& cluster = r.clusters.front();
  const Method method = r.methods.front();
  const auto plan =
      complete_plan(r, choose_workload(r, method, cluster, 0).workload, cluster, text);
  if (!plan) return plan.error();
  if (plan->pipeline < 2 || plan->layer_split)
    return Problem{ProblemKind::request, "--schedules",
                   "compares pipeline schedules: the plan needs pp=2 or more"};
  const Workload workload = choose_workload(r, method, cluster, *plan).workload;
  const Comparison comparison(r, workload, *plan);
  const auto asked = comparison.played(*plan, false);
  if (!asked) return asked.error();
  ScheduleComparison result{{workload, *plan, cluster}, budget.value_or(worst_peak(*asked)), {}};
  for (const PipelineSchedule& schedule : pipeline_schedules()) {
    if (schedule.name == layer_split_schedule) continue;  // no pipelining
    for (const int chunks : chunks_to_show(schedule, *plan, r.model.layers)) {
      ScheduleRow row = comparison.row(schedule, chunks);
      if (row.as_asked) row.equal_memory = comparison.within(schedule, chunks, result.budget);
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

}  // namespace shardwise
