#include "planner/advice/advice_faster.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/advice/advice_changes.hpp"
#include "planner/advice/advice_trial.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/search/choice_costs.hpp"
#include "planner/search/fastest_plan.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_forecast = 3;  // each costs a play of memory

Seconds per_sequence(Seconds step, const ParallelPlan& plan) {
  return Seconds(step.value / static_cast<double>(plan.global_batch()));
}

// A plan, and what a sequence takes with it at the least.
struct Bounded {
  const ParallelPlan* plan;
  Seconds least;
};

// The bound of a step holds with any allocator; of an optimizer that pages there is none.
std::vector<Bounded> promising(const AdviceTrial& t, Seconds within) {
  std::vector<Bounded> all;
  ChoiceCosts costs(t.request, t.method, t.cluster);
  for (const ParallelPlan& plan : t.missed.fragmented) {
    const bool paged = costs.workload(plan).optimizer->paged;
    const Seconds least = per_sequence(paged ? Seconds(0) : costs.step_bound(plan), plan);
    if (least <= within) all.push_back({&plan, least});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Bounded& a, const Bounded& b) { return a.least < b.least; });
  all.resize(std::min(all.size(), most_forecast));
  return all;
}

}  // namespace

std::vector<Advice> advise_faster(const ResolvedRequest& request, Method method,
                                  const Cluster& cluster, const ChosenPlan& chosen) {
  if (chosen.verdict == Verdict::does_not_fit || chosen.fragmented.empty()) return {};
  const std::vector<KnownPlan> no_others;
  AdviceTrial t{request, method, cluster, chosen, no_others, {}};
  const Seconds now = per_sequence(chosen.forecast.step_time.expected, chosen.question.plan);
  Seconds within(now.value / worth_a_note);
  std::optional<ChosenPlan> best;
  std::string change;
  for (const Bounded& one : promising(t, within)) {
    if (one.least > within) break;
    Question q{choose_workload(request, method, cluster, *one.plan).workload, *one.plan, cluster};
    const auto words = grow_segments(t, q);
    if (!words) continue;
    auto fitting = fits_with(t, std::move(q));
    if (!fitting) continue;
    const Seconds then = per_sequence(fitting->forecast.step_time.expected, *one.plan);
    const bool loses_room = fitting->verdict == Verdict::tight && chosen.verdict == Verdict::fits;
    if (then > within || (loses_room && tight_has_to_save * then > now)) continue;
    within = then;
    best = std::move(fitting);
    change = sentence("another plan with ", words->change, " (", words->meaning, ")");
  }
  if (best) record_advice(t, std::move(change), *best);
  return std::move(t.advice);
}

}  // namespace shardwise
