#include "planner/search/plan_trial.hpp"

#include <iterator>

#include "planner/forecast/judgement.hpp"

namespace shardwise {

void PlanTrial::join(PlanTrial&& one) {
  std::move(one.fitting.begin(), one.fitting.end(), std::back_inserter(fitting));
  hopeless.insert(hopeless.end(), one.hopeless.begin(), one.hopeless.end());
  missed.insert(missed.end(), one.missed.begin(), one.missed.end());
  if (refused.empty()) refused = std::move(one.refused);
  if (untold.empty()) untold = std::move(one.untold);
  considered += one.considered;
}

bool PlanTrial::keeps(const ParallelPlan& plan) {
  if (target == nullptr || kept == Kept::all) return true;
  const auto refusal = first_plan_refusal(*target, question(plan));
  if (refusal && untold.empty()) untold = *refusal;
  return refusal.has_value() == (kept == Kept::untellable);
}

std::optional<Tried> try_plan(PlanTrial& s, const ParallelPlan& plan, ForecastOptions wanted) {
  Tried t{s.question(plan), {}};
  wanted.time = wanted.least_card = false;
  wanted.known = &s.costs.collectives();
  auto memory = forecast(t.question, s.request.facts->profile, wanted);
  if (!memory) {
    if (s.refused.empty()) s.refused = memory.error();
    return std::nullopt;
  }
  t.memory = *std::move(memory);
  t.verdict = judged(t.memory, s.request.host_ram_stated);
  return t;
}

void try_for_verdict(PlanTrial& s, const ParallelPlan& plan) {
  ++s.considered;
  std::optional<Tried> t = try_plan(s, plan, {.only_if_fits = true});
  if (!t) return;
  if (t->verdict == Verdict::does_not_fit)
    s.missed.push_back(missed_by(plan, *t));
  else
    s.fitting.push_back(*std::move(t));
}

}  // namespace shardwise
