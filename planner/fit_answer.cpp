#include "planner/fit_answer.hpp"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "planner/judgement.hpp"
#include "planner/model_states.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/workload_choice.hpp"

namespace shardwise {
namespace {

// Cards of one size differ in little but speed: what was chosen for the first is chosen for the
// next, if the same predictor gives it the same verdict there. Otherwise the search is made anew.
Result<ChosenPlan> chosen_like(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, const ChosenPlan& model) {
  ChosenPlan same = model;
  same.question.cluster = cluster;
  // A card may lack the number format of the first: then it trains in another.
  ChosenWorkload here = choose_workload(request, method, cluster, model.question.plan.zero_stage);
  const bool same_format = here.workload.compute == model.question.workload.compute;
  same.question.workload = std::move(here.workload);
  same.notes = std::move(here.notes);
  auto f = forecast(same.question, request.facts->profile,
                    {.plays = same_format ? model.forecast.plays : nullptr});
  if (f) {
    same.forecast = *std::move(f);
    same.verdict = judged(same.forecast, request.host_ram_stated);
    if (same.verdict == model.verdict) return same;
  }
  return choose_plan(request, method, cluster);
}

FitAnswer answer_for(Method method, std::size_t cluster, ChosenPlan chosen) {
  FitAnswer a;
  a.method = method;
  a.cluster = cluster;
  const Forecast& f = chosen.forecast;
  a.gpu = f.stages[static_cast<std::size_t>(f.worst_stage)].gpu;
  a.model_states = model_states(chosen.question.workload);
  a.chosen = std::move(chosen);
  return a;
}

// The cards after the first that has an answer are alike to it, each for itself.
FitAnswers answers_of(const ResolvedRequest& request, Method method) {
  FitAnswers all;
  const std::size_t n = request.clusters.size();
  std::vector<std::optional<Result<ChosenPlan>>> chosen(n);
  std::size_t first = 0;
  for (; first < n; ++first) {
    chosen[first] = choose_plan(request, method, request.clusters[first]);
    if (*chosen[first]) break;
  }
  if (first < n)
    on_all_cores(n - first - 1, [&](std::size_t i) {
      const std::size_t other = first + 1 + i;
      chosen[other] = chosen_like(request, method, request.clusters[other], **chosen[first]);
    });
  for (std::size_t i = 0; i < n; ++i) {
    if (*chosen[i])
      all.answers.push_back(answer_for(method, i, **std::move(chosen[i])));
    else if (all.problems.empty())
      all.problems = chosen[i]->error();
  }
  return all;
}

// Advice is sought on the first card of a size; it names its own card where it needs another.
void add_advice(const ResolvedRequest& request, FitAnswers& all,
                const std::vector<KnownPlan>& known) {
  if (all.answers.empty()) return;
  const FitAnswer& first = all.answers.front();
  if (first.chosen.verdict != Verdict::does_not_fit) return;
  const std::vector<Advice> advice =
      advise(request, first.method, request.clusters[first.cluster], first.chosen, known);
  for (FitAnswer& a : all.answers)
    if (a.chosen.verdict == Verdict::does_not_fit) a.advice = advice;
}

// Runs work(i) for every i, each on a thread of its own: there are as many as methods.
template <class Work>
void side_by_side(std::size_t n, Work work) {
  std::vector<std::future<void>> parts;
  for (std::size_t i = 0; i < n; ++i) parts.push_back(std::async(std::launch::async, work, i));
  for (auto& part : parts) part.get();
}

}  // namespace

FitAnswers fit_answers(const ResolvedRequest& request) {
  const std::size_t n = request.methods.size();
  std::vector<FitAnswers> of_method(n);
  side_by_side(n, [&](std::size_t i) { of_method[i] = answers_of(request, request.methods[i]); });
  std::vector<KnownPlan> known;
  for (const FitAnswers& one : of_method)
    if (!one.answers.empty() && one.answers.front().cluster == 0)
      known.push_back({one.answers.front().method, &one.answers.front().chosen});
  side_by_side(n, [&](std::size_t i) { add_advice(request, of_method[i], known); });
  FitAnswers all;
  for (FitAnswers& one : of_method) {
    std::move(one.answers.begin(), one.answers.end(), std::back_inserter(all.answers));
    all.problems.insert(all.problems.end(), one.problems.begin(), one.problems.end());
  }
  return all;
}

}  // namespace shardwise
