#include "planner/answers/fit_answer.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/advice/advice_faster.hpp"
#include "planner/answers/plan_starts.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/near_batch.hpp"
#include "planner/search/plan_warnings.hpp"
#include "planner/sentence.hpp"
#include "simulator/memory/played_alike.hpp"

namespace shardwise {
namespace {

// Cards of one size differ in little but speed: what was chosen for the first is chosen for the
// next, if the same predictor gives it the same verdict there. Otherwise the search is made anew.
// `wanted`: with the plays of an earlier card that is played alike, if there is one.
Result<ChosenPlan> chosen_like(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, const ChosenPlan& model, ChosenWorkload here,
                               const ForecastOptions& wanted) {
  ChosenPlan same = model;
  same.question.cluster = cluster;
  same.question.workload = std::move(here.workload);
  same.notes = std::move(here.notes);
  auto f = forecast(same.question, request.facts->profile, wanted);
  if (f) {
    same.forecast = *std::move(f);
    same.verdict = judged(same.forecast, request.host_ram_stated);
    if (same.verdict == model.verdict) return same;
  }
  return choose_near_plan(request, method, cluster, nullptr, Looked::all);
}

FitAnswer answer_for(Method method, std::size_t cluster, ChosenPlan chosen) {
  FitAnswer a;
  a.method = method;
  a.cluster = cluster;
  const Forecast& f = chosen.forecast;
  a.gpu = f.worst().gpu;
  a.chosen = std::move(chosen);
  return a;
}

using Choices = std::vector<std::optional<Result<ChosenPlan>>>;

// A step of less than a day on one card is forecast on the others too, as steps are up to 106 days.
// Assumed: no card is 106 times slower than another of one question.
constexpr Seconds far_from_too_long{86400};

bool misses(const std::optional<Result<ChosenPlan>>& chosen) {
  return chosen && *chosen && (**chosen).verdict == Verdict::does_not_fit;
}

// Whether the other cards' verdicts may do (FitTold::in_text).
bool verdict_may_do(const ChosenPlan& model, FitTold told) {
  const Forecast& f = model.forecast;
  return told == FitTold::in_text && model.verdict == Verdict::does_not_fit && f.tokens_per_s > 0 &&
         f.step_time.expected < far_from_too_long;
}

// The cards after the first that has an answer, which is the model: each for itself. A card may
// train in another number format, attend by another kernel or lack expandable segments: of those
// that do alike, one goes ahead of the rest, who then take its plays if it has kept the plan.
void choose_for_others(const ResolvedRequest& request, Method method, std::size_t first,
                       FitTold told, Choices& chosen) {
  const ChosenPlan& model = **chosen[first];
  const std::size_t n = chosen.size();
  std::vector<ChosenWorkload> workloads(n);
  std::vector<std::size_t> ahead{first}, leader(n, first), rounds[2];
  for (std::size_t i = first + 1; i < n; ++i) {
    workloads[i] = choose_workload(request, method, request.clusters[i], model.question.plan);
    const auto same = std::find_if(ahead.begin(), ahead.end(), [&](std::size_t at) {
      const Workload& before = at == first ? model.question.workload : workloads[at].workload;
      return played_alike(before, workloads[i].workload);
    });
    leader[i] = same == ahead.end() ? i : *same;
    if (same == ahead.end()) ahead.push_back(i);
    rounds[leader[i] == first || leader[i] == i ? 0 : 1].push_back(i);
  }
  const auto choose = [&](std::size_t i, bool verdict_alone) {
    ForecastOptions wanted{.time = !verdict_alone, .only_if_fits = verdict_alone};
    if (leader[i] != i && *chosen[leader[i]] &&
        (**chosen[leader[i]]).question.plan == model.question.plan)
      wanted.plays = (**chosen[leader[i]]).forecast.plays;
    chosen[i] = chosen_like(request, method, request.clusters[i], model, workloads[i], wanted);
  };
  const bool verdict_alone = verdict_may_do(model, told);
  for (const std::vector<std::size_t>& round : rounds)
    on_all_cores(round.size(), [&](std::size_t at) { choose(round[at], verdict_alone); });
  if (!verdict_alone ||
      std::all_of(chosen.begin() + static_cast<std::ptrdiff_t>(first), chosen.end(), misses))
    return;
  for (const std::vector<std::size_t>& round : rounds)
    on_all_cores(round.size(), [&](std::size_t at) {
      const std::size_t i = round[at];
      if (!misses(chosen[i]) || (**chosen[i]).forecast.tokens_per_s > 0) return;
      choose(i, false);
    });
}

bool fits(const ChosenPlan& chosen) { return chosen.verdict != Verdict::does_not_fit; }
bool fits(const FitAnswer& a) { return fits(a.chosen); }

// What is chosen for each card by one method, and the first card that has an answer.
struct MethodChoices {
  Choices chosen;
  std::size_t first = 0;

  const ChosenPlan* model() const { return first < chosen.size() ? &**chosen[first] : nullptr; }
};

MethodChoices choose_for_first(const ResolvedRequest& request, Method method) {
  const std::size_t n = request.clusters.size();
  MethodChoices all{Choices(n), 0};
  for (; all.first < n; ++all.first) {
    all.chosen[all.first] =
        choose_near_plan(request, method, request.clusters[all.first], nullptr, Looked::all);
    if (*all.chosen[all.first]) break;
  }
  return all;
}

// Advice is sought on the first card of a size; it names its own card where it needs another.
std::vector<Advice> advice_for(const ResolvedRequest& request, Method method, std::size_t cluster,
                               const ChosenPlan& chosen, const std::vector<KnownPlan>& known) {
  if (chosen.verdict == Verdict::fits) return {};
  return advise(request, method, request.clusters[cluster], chosen, known);
}

// The model states of the last answer: those of the one before, where their cards decide alike.
Bytes states_of_last(const std::vector<FitAnswer>& answers) {
  const Workload& last = answers.back().chosen.question.workload;
  if (answers.size() > 1) {
    const FitAnswer& before = answers[answers.size() - 2];
    const Workload& w = before.chosen.question.workload;
    if (before.method == answers.back().method && w.framework.id == last.framework.id &&
        played_alike(w, last))
      return before.model_states;
  }
  return model_states(last);
}

// What is told of a method's first card. `advised`: the verdict that the advice is about.
struct AdviceOfFirst {
  std::vector<Advice> advice, faster;
  Verdict advised = Verdict::fits;
};

void append(FitAnswers& all, Method method, MethodChoices choices, AdviceOfFirst of_first) {
  Problems problems;
  for (std::size_t i = 0; i < choices.chosen.size(); ++i) {
    Result<ChosenPlan>& chosen = *choices.chosen[i];
    if (!chosen) {
      if (problems.empty()) problems = chosen.error();
      continue;
    }
    all.answers.push_back(answer_for(method, i, *std::move(chosen)));
    FitAnswer& a = all.answers.back();
    a.model_states = states_of_last(all.answers);
    if (a.chosen.verdict == of_first.advised) a.advice = of_first.advice;
    if (i == choices.first) a.faster = std::move(of_first.faster);
  }
  if (!problems.empty()) all.unplanned.push_back({method, std::move(problems)});
}

// How far each method goes, on the card whose plan is shown.
void add_reach(const ResolvedRequest& request, FitAnswers& all) {
  for (const Method method : request.methods) {
    FitAnswer* shown = nullptr;
    for (FitAnswer& a : all.answers)
      if (a.method == method && (shown == nullptr || (!fits(*shown) && fits(a)))) shown = &a;
    if (shown != nullptr) shown->reach = reach(request, method, request.clusters[shown->cluster]);
  }
}

// The first card of each method whose plan is shown.
FitAnswer* first_fitting(FitAnswers& all, Method method) {
  for (FitAnswer& a : all.answers)
    if (a.method == method && fits(a)) return &a;
  return nullptr;
}

// What holds a plan up that is answered with, by the rules of `plan`. A part of the cluster runs
// the framework of the whole, so that nothing but the GPUs differs, and a plan of its own.
std::vector<std::string> warnings_of(const ResolvedRequest& request, Method method,
                                     const ChosenPlan& chosen) {
  ResolvedRequest on_part = request;
  on_part.most_gpus = std::max(request.most_gpus, request.gpus());
  on_part.batch = chosen.question.plan.global_batch();
  on_part.asked.plans.clear();
  const auto best_step_on = [&](const Cluster& part) -> std::optional<Seconds> {
    const auto best = choose_plan(on_part, method, part, Room::demanded, nullptr, Looked::fitting);
    if (!best || best->verdict != Verdict::fits) return std::nullopt;
    return best->forecast.step_time.expected;
  };
  return plan_warnings(
      {chosen.question, chosen.forecast.step_time.expected, request.facts->profile, best_step_on});
}

// Which launch targets start the plan; where none does, the best of those that one would start.
std::string started_by(const ResolvedRequest& request, Method method, const ChosenPlan& chosen) {
  const Question& q = chosen.question;
  const PlanStarts starts = plan_starts(request, q, nullptr, true);
  const std::string said = told(starts, "this plan");
  if (starts.any() || !q.cluster.groups.front().gpu.runs_cuda_or_rocm()) return said + '.';
  const auto other = best_start(request.stated, method, *request.facts);
  if (!other) return said + '.';
  const Forecast& f = other->forecast;
  return sentence(said, "; --target ", other->target->name, " starts ",
                  whole_text(other->job.question.plan), ": ", shown_gib(f.worst().needed), " of ",
                  shown_gib(f.worst().capacity), " per GPU",
                  other->verdict == Verdict::tight ? ", tightly, " : ", ",
                  shown_time(f.step_time.expected), " a step.");
}

}  // namespace

FitAnswers fit_answers(const ResolvedRequest& request, FitTold told) {
  const std::size_t n = request.methods.size();
  std::vector<MethodChoices> choices(n);
  std::vector<ChosenPlan> firsts(n);  // what advice looks at while the other cards are chosen for
  std::vector<std::shared_future<void>> chosen;  // of each method's first card
  for (std::size_t i = 0; i < n; ++i)
    chosen.push_back(std::async(std::launch::async, [&, i] {
      choices[i] = choose_for_first(request, request.methods[i]);
      if (choices[i].model() != nullptr) firsts[i] = *choices[i].model();
    }));
  const auto known = [&] {  // advice may say another method's answer
    std::vector<KnownPlan> plans;
    for (std::size_t i = 0; i < n; ++i) {
      chosen[i].get();
      if (choices[i].first == 0 && choices[i].model() != nullptr)
        plans.push_back({request.methods[i], &firsts[i]});
    }
    return plans;
  };
  std::vector<AdviceOfFirst> advice(n);
  std::vector<std::optional<std::vector<std::string>>> warnings(n);  // of first cards that fit
  std::vector<std::optional<std::string>> started(n);                // the same
  // One more than cores: where one waits for a first card, the others still fill them. All at once
  // would hold the memory of twelve plays.
  on_threads(cores_here() + 1, 4 * n, [&](std::size_t task) {
    const BesideMany marked;
    const std::size_t i = task % n;
    chosen[i].get();
    const std::size_t first = choices[i].first;
    if (first == request.clusters.size()) return;
    if (task < n && fits(firsts[i]))  // the longest plays
      started[i] = started_by(request, request.methods[i], firsts[i]);
    else if (n <= task && task < 2 * n)
      advice[i] = {advice_for(request, request.methods[i], first, firsts[i], known()),
                   advise_faster(request, request.methods[i], request.clusters[first], firsts[i]),
                   firsts[i].verdict};
    else if (2 * n <= task && task < 3 * n)
      choose_for_others(request, request.methods[i], first, told, choices[i].chosen);
    else if (3 * n <= task && fits(firsts[i]))
      warnings[i] = warnings_of(request, request.methods[i], firsts[i]);
  });
  FitAnswers all;
  all.answers.reserve(n * request.clusters.size());
  for (std::size_t i = 0; i < n; ++i)
    append(all, request.methods[i], std::move(choices[i]), std::move(advice[i]));
  on_all_cores(n, [&](std::size_t i) {
    FitAnswer* const shown = first_fitting(all, request.methods[i]);
    if (shown == nullptr) return;
    shown->warnings = warnings[i] ? *std::move(warnings[i])
                                  : warnings_of(request, request.methods[i], shown->chosen);
    shown->started = started[i] ? *std::move(started[i])
                                : started_by(request, request.methods[i], shown->chosen);
    shown->lengths = length_outlook(request, shown->chosen.question, shown->chosen.forecast);
  });
  if (request.asked.reach) add_reach(request, all);
  return all;
}

}  // namespace shardwise
