#include "planner/fit_answer.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/judgement.hpp"
#include "planner/model_states.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/workload_choice.hpp"

namespace shardwise {
namespace {

// Cards of one size differ in little but speed: what was chosen for the first is chosen for the
// next, if the same predictor gives it the same verdict there. Otherwise the search is made anew.
// `plays` are those of an earlier card that trains in the same format, if there is one.
Result<ChosenPlan> chosen_like(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, const ChosenPlan& model, ChosenWorkload here,
                               std::shared_ptr<const MemoryPlays> plays) {
  ChosenPlan same = model;
  same.question.cluster = cluster;
  same.question.workload = std::move(here.workload);
  same.notes = std::move(here.notes);
  auto f = forecast(same.question, request.facts->profile, {.plays = std::move(plays)});
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

using Choices = std::vector<std::optional<Result<ChosenPlan>>>;

// Whether the allocator's stream of one plan is the same: what a card decides of it (settle_on).
bool played_alike(const Workload& a, const Workload& b) {
  return a.compute == b.compute && a.framework.attention == b.framework.attention &&
         a.framework.expandable_segments == b.framework.expandable_segments;
}

// The cards after the first that has an answer, which is the model: each for itself. A card may
// train in another number format, attend by another kernel or lack expandable segments: of those
// that do alike, one goes ahead of the rest, who then take its plays if it has kept the plan.
void choose_for_others(const ResolvedRequest& request, Method method, std::size_t first,
                       Choices& chosen) {
  const ChosenPlan& model = **chosen[first];
  const std::size_t n = chosen.size();
  std::vector<ChosenWorkload> workloads(n);
  std::vector<std::size_t> ahead{first}, leader(n, first), rounds[2];
  for (std::size_t i = first + 1; i < n; ++i) {
    workloads[i] =
        choose_workload(request, method, request.clusters[i], model.question.plan.zero_stage);
    const auto same = std::find_if(ahead.begin(), ahead.end(), [&](std::size_t at) {
      const Workload& before = at == first ? model.question.workload : workloads[at].workload;
      return played_alike(before, workloads[i].workload);
    });
    leader[i] = same == ahead.end() ? i : *same;
    if (same == ahead.end()) ahead.push_back(i);
    rounds[leader[i] == first || leader[i] == i ? 0 : 1].push_back(i);
  }
  for (const std::vector<std::size_t>& round : rounds)
    on_all_cores(round.size(), [&](std::size_t at) {
      const std::size_t i = round[at];
      std::shared_ptr<const MemoryPlays> plays;
      if (leader[i] != i && *chosen[leader[i]] &&
          (**chosen[leader[i]]).question.plan == model.question.plan)
        plays = (**chosen[leader[i]]).forecast.plays;
      chosen[i] = chosen_like(request, method, request.clusters[i], model, std::move(workloads[i]),
                              std::move(plays));
    });
}

FitAnswers answers_of(const ResolvedRequest& request, Method method) {
  FitAnswers all;
  const std::size_t n = request.clusters.size();
  Choices chosen(n);
  std::size_t first = 0;
  for (; first < n; ++first) {
    chosen[first] = choose_plan(request, method, request.clusters[first]);
    if (*chosen[first]) break;
  }
  if (first < n) choose_for_others(request, method, first, chosen);
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
