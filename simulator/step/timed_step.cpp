#include "simulator/step/timed_step.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/step/engine.hpp"
#include "simulator/step/step_player.hpp"

namespace shardwise {
namespace {

TimedStep by_stages(const PlayedStages& played) {
  TimedStep timed;
  timed.makespan = played.makespan;
  timed.tasks = played.tasks;
  timed.busiest = played.summary;
  timed.busiest_rank = static_cast<std::size_t>(played.busiest);
  return timed;
}

std::optional<TimedStep> by_tasks(LoweredStep step, bool keep) {
  RunOutcome outcome = run(step.graph);
  if (std::holds_alternative<ClockOverflow>(outcome)) return std::nullopt;
  auto* timeline = std::get_if<Timeline>(&outcome);
  require(timeline != nullptr, "a legal schedule does not deadlock");
  const std::vector<RankSummary> ranks = summarise_ranks(step.graph, *timeline);
  const auto busiest = std::min_element(
      ranks.begin(), ranks.end(),
      [](const RankSummary& a, const RankSummary& b) { return total(a.busy) > total(b.busy); });
  TimedStep timed;
  timed.makespan = timeline->makespan;
  timed.tasks = static_cast<std::int64_t>(step.graph.task_count());
  timed.busiest = *busiest;
  timed.busiest_rank = static_cast<std::size_t>(busiest - ranks.begin());
  timed.ranks_per_stage = step.ranks_per_stage;
  if (keep) timed.kept = PlayedStep{std::move(step), std::move(*timeline)};
  return timed;
}

}  // namespace

std::optional<TimedStep> time_step(const ParallelPlan& plan, const PipelineSchedule& schedule,
                                   const StepCosts& costs, const StepTraffic& traffic,
                                   const StepWish& wish) {
  if (!wish.unfold && !wish.keep) {
    const auto played = play_stages(plan, schedule, costs, &traffic, {true, wish.longest});
    if (!played) return std::nullopt;
    return by_stages(*played);
  }
  return by_tasks(lower(plan, schedule, costs, wish.unfold, &traffic, wish.variation), wish.keep);
}

}  // namespace shardwise
