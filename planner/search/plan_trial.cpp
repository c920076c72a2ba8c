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

namespace {

// Nobody where the card decides which operators run again.
LentPlays* lent_for(const PlanTrial& s, const ParallelPlan& plan) {
  if (s.lent == nullptr) return nullptr;
  const auto policy = recompute_policy(plan.recompute);
  return policy && !policy->row->searched ? s.lent : nullptr;
}

}  // namespace

std::optional<Tried> try_plan(PlanTrial& s, const ParallelPlan& plan, ForecastOptions wanted) {
  Tried t{s.question(plan), {}};
  wanted.time = wanted.least_card = false;
  wanted.known = &s.costs.collectives();
  LentPlays* lent = wanted.plays == nullptr ? lent_for(s, plan) : nullptr;
  if (lent != nullptr) wanted.plays = lent->of(t.question);
  auto memory = forecast(t.question, s.request.facts->profile, wanted);
  if (!memory) {
    if (s.refused.empty()) s.refused = memory.error();
    return std::nullopt;
  }
  t.memory = *std::move(memory);
  if (lent != nullptr && wanted.plays == nullptr && t.memory.plays != nullptr)
    lent->add(t.question, t.memory.plays);
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
