// Plan trial: what one choice of a plan looks at (plan_choice.hpp), and what it has found so far.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/choice_costs.hpp"
#include "planner/search/lent_plays.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

// A plan whose memory has been forecast.
struct Tried {
  Question question;
  Forecast memory;
  Verdict verdict = Verdict::does_not_fit;
  std::optional<Seconds> step = std::nullopt;  // where it was forecast before
};

// Does not fit: nobody has looked by how much.
struct Missed {
  ParallelPlan plan;
  std::shared_ptr<const MemoryPlays> plays;      // where they went on to the end for the verdict
  std::shared_ptr<const BlockRecompute> chosen;  // where operators to run again were searched for
  bool for_its_host = false;                     // GPUs hold it: the host's stated RAM decides
};

inline Missed missed_by(const ParallelPlan& plan, const Tried& t) {
  return {plan, t.memory.plays, t.memory.chosen, t.memory.verdict != Verdict::does_not_fit};
}

// Which plans are looked at, where launch files are written for the framework that was asked for:
// all, those that such a file can say ("tellable"), or the others.
enum class Kept { all, tellable, untellable };

// Everything that one choice looks at.
struct PlanTrial {
  const ResolvedRequest& request;
  const Cluster& cluster;
  Method method;
  ChoiceCosts& costs;
  Looked looked = Looked::decisive;
  const LaunchTarget* target = nullptr;  // of the framework asked for; nullptr: all plans are kept
  Kept kept = Kept::all;
  LentPlays* lent = nullptr;  // of choices for other cards
  std::vector<std::string> notes = {};
  std::vector<Tried> fitting = {};  // to be timed
  std::vector<Missed> missed = {};
  std::vector<ParallelPlan> hopeless = {};  // model states alone exceed the GPU
  Problems refused = {};                    // of plans that are not legal, the first plan's
  int considered = 0;
  std::string untold = {};  // why the target cannot say the first plan that was left out for it

  // To look at part of it, beside others.
  PlanTrial part() const { return {request, cluster, method, costs, looked, target, kept, lent}; }
  // Takes over what a part has found.
  void join(PlanTrial&& one);

  bool keeps(const ParallelPlan& plan);
  Question question(const ParallelPlan& plan) const {
    return {costs.workload(plan), plan, cluster};
  }
};

// Forecasts memory, on a card without end; nothing where the plan is refused.
std::optional<Tried> try_plan(PlanTrial& s, const ParallelPlan& plan, ForecastOptions wanted);

// Whether it fits is all that is asked. Kept is what does, or what misses.
void try_for_verdict(PlanTrial& s, const ParallelPlan& plan);

// Each part is tried on its own and joined in order, so threads change nothing in the answer.
template <class Try>
void in_parts(PlanTrial& s, std::size_t n, Try try_part) {
  std::vector<std::optional<PlanTrial>> parts(n);
  on_all_cores(n, [&](std::size_t i) {
    PlanTrial one = s.part();
    try_part(one, i);
    parts[i].emplace(std::move(one));
  });
  for (std::optional<PlanTrial>& part : parts) s.join(*std::move(part));
}

}  // namespace shardwise
