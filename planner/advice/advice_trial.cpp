#include "planner/advice/advice_trial.hpp"

#include <algorithm>
#include <utility>

#include "planner/advice/advised_request.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/forecast/model_states.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

double seconds_per_token(const ChosenPlan& c) {
  return c.forecast.tokens_per_s > 0 ? 1.0 / c.forecast.tokens_per_s : 0.0;
}

// Model states are a lower bound: a plan whose states alone are too much needs no forecast.
bool hopeless(const Question& q) {
  Bytes largest;
  for (const NodeGroup& g : q.cluster.groups) largest = std::max(largest, g.gpu.usable_memory());
  return states_on_gpu(q.workload, q.plan) > largest;
}

}  // namespace

Result<ChosenPlan> choose_fitting(const ResolvedRequest& request, Method method,
                                  const Cluster& cluster) {
  return choose_plan(request, method, cluster, Room::weighed, nullptr, Looked::fitting);
}

std::optional<ChosenPlan> fits_with(const AdviceTrial& trial, Question changed, HostRam host,
                                    std::shared_ptr<const MemoryPlays> plays,
                                    const HostAccepts& accepts_host) {
  if (!plan_problems(changed.workload, changed.plan, changed.cluster).empty()) return std::nullopt;
  if (hopeless(changed)) return std::nullopt;
  const bool host_decides = host == HostRam::decides && trial.request.host_ram_stated;
  const Profile& profile = trial.request.facts->profile;
  const bool was_tight = trial.missed.verdict == Verdict::tight;
  auto f = forecast(
      changed, profile,
      {.time = false, .only_if_fits = true, .tight_is_told = was_tight, .plays = std::move(plays)});
  if (!f) return std::nullopt;
  const Verdict verdict = judged(*f, host_decides);
  const bool no_better = verdict == Verdict::tight && was_tight;
  if (verdict == Verdict::does_not_fit || no_better) return std::nullopt;
  if (accepts_host && !accepts_host(f->host)) return std::nullopt;
  f = forecast(changed, profile, {.plays = f->plays, .chosen = f->chosen});
  if (!f) return std::nullopt;
  ChosenPlan chosen{std::move(changed), *std::move(f), Verdict::fits, {}, 1};
  chosen.verdict = judged(chosen.forecast, host_decides);
  return chosen;
}

ChosenPlan larger_passes(const AdviceTrial& trial, ChosenPlan found) {
  constexpr double much = 1.5;  // times as long; a preference, as larger ones cost plays of memory
  if (trial.request.asked.microbatch) return found;
  if (seconds_per_token(found) < much * seconds_per_token(trial.missed)) return found;
  while (found.question.plan.microbatches % 2 == 0) {
    Question q = found.question;
    q.plan.microbatch *= 2;
    q.plan.microbatches /= 2;
    auto larger = fits_with(trial, std::move(q), HostRam::is_named);
    if (!larger || larger->verdict != found.verdict ||
        seconds_per_token(*larger) >= seconds_per_token(found))
      break;
    found = *std::move(larger);
  }
  return found;
}

void record_advice(AdviceTrial& trial, std::string change, const ChosenPlan& chosen) {
  const Forecast& f = chosen.forecast;
  Advice a;
  a.change = std::move(change);
  a.verdict = chosen.verdict;
  a.gpu = f.worst().gpu;
  a.plan = whole_text(chosen.question.plan);
  a.question = chosen.question;
  a.request = advised_request(trial.request, trial.question(), chosen.question);
  a.device = f.worst().peak.device;
  a.needed = f.worst().needed;
  a.memory_effect = a.needed - trial.missed.forecast.worst().needed;
  a.step_time = f.step_time;
  if (seconds_per_token(trial.missed) > 0)
    a.time_ratio = seconds_per_token(chosen) / seconds_per_token(trial.missed);
  a.host_ram = std::max(f.host.steady, f.host.load_peak);
  trial.advice.push_back(std::move(a));
}

bool offer(AdviceTrial& trial, std::string change, Question changed,
           std::shared_ptr<const MemoryPlays> plays) {
  const auto chosen = fits_with(trial, std::move(changed), HostRam::decides, std::move(plays));
  if (chosen) record_advice(trial, std::move(change), *chosen);
  return chosen.has_value();
}

}  // namespace shardwise
