#include "planner/sweep/point_answer.hpp"

#include <array>
#include <string>
#include <utility>

#include "planner/answers/plan_answer.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {
namespace {

using Found = Result<PointForecast>;

Found with_plan(const ResolvedRequest& r, const std::string& text) {
  const Cluster& cluster = r.clusters.front();
  const Method method = r.methods.front();
  const ChosenWorkload first = choose_workload(r, method, cluster, 0);
  const auto plan = complete_plan(r, first.workload, cluster, text);
  if (!plan) return plan.error();
  const ChosenWorkload chosen = choose_workload(r, method, cluster, *plan);
  const Question question{chosen.workload, *plan, cluster};
  auto f = forecast(question, r.facts->profile, {.unfold = r.asked.unfold});
  if (!f) return f.error();
  const Verdict verdict = judged(*f, r.host_ram_stated);
  return PointForecast{question, *std::move(f), verdict};
}

Found by_fit(const ResolvedRequest& r) {
  auto chosen = choose_plan(r, r.methods.front(), r.clusters.front());
  if (!chosen) return chosen.error();
  return PointForecast{std::move(chosen->question), std::move(chosen->forecast), chosen->verdict};
}

Found by_search(const ResolvedRequest& r) {
  PlanWish wish;
  wish.top = 1;
  Request asked = r.asked;
  asked.methods = r.methods;
  const auto answer = plan_answer(asked, wish, *r.facts);
  if (!answer) return answer.error();
  const SearchResult& result = (*answer)->result;
  if (result.best.empty()) return by_fit(r);
  // Forecast anew, as a search may leave out what it does not need to rank a plan.
  return with_plan(r, whole_text(result.best.front().plan));
}

struct PlanChooser {
  std::string_view word;
  Found (*find)(const ResolvedRequest&);
};
constexpr std::array<PlanChooser, 2> choosers{{{"fit", by_fit}, {"best", by_search}}};

const PlanChooser* word_of(const Request& asked) {
  const std::string word = asked.plans.empty() ? "fit" : asked.plans.front();
  for (const PlanChooser& w : choosers)
    if (w.word == word) return &w;
  return nullptr;
}

}  // namespace

std::optional<std::string_view> plan_word(const Request& asked) {
  const PlanChooser* known = word_of(asked);
  if (known == nullptr) return std::nullopt;
  return known->word;
}

PointAnswer answer_point(const Request& asked, PointFacts& facts) {
  PointAnswer answer;
  const auto mine = facts.of(asked);
  if (!mine) {
    answer.problems = mine.error();
    return answer;
  }
  Request request = asked;
  const PlanChooser* word = word_of(asked);
  if (word != nullptr) request.plans.clear();
  auto resolved = resolve(request, **mine, UnnamedMethods::one);
  if (!resolved) {
    answer.problems = resolved.error();
    return answer;
  }
  answer.request = *std::move(resolved);
  const ResolvedRequest& r = *answer.request;
  answer.rental = cheapest_rental((*mine)->catalog.prices, r.clusters.front());
  // Files that say a plan (plan_from) have put it into the request by now.
  Found found = r.asked.plans.empty() ? word->find(r) : with_plan(r, r.asked.plans.front());
  if (!found) {
    answer.problems = found.error();
    return answer;
  }
  answer.found = *std::move(found);
  if (r.asked.tokens || r.asked.samples)
    answer.outlook =
        run_outlook(r, answer.found->question, answer.found->forecast, facts.operations());
  return answer;
}

}  // namespace shardwise
