#include "planner/answers/list_starts.hpp"

#include <algorithm>
#include <utility>

#include "planner/launch/launch_target.hpp"

namespace shardwise {
namespace {

// Of more legal plans than this a longer search would take longer than people wait: a preference.
constexpr std::int64_t most_searched_again = 1'000'000;

// What no launch target can be told of the work; nothing where none can be told the work.
PlanRefusal untold_by_all(const SearchSite& site) {
  std::vector<const LaunchTarget*> able;
  for (const LaunchTarget& target : launch_targets())
    if (target.workload_refusals(site.without_zero).empty()) able.push_back(&target);
  if (able.empty()) return nullptr;
  return [able](const Question& q) -> std::optional<std::string> {
    std::optional<std::string> first;
    for (const LaunchTarget* target : able) {
      auto reason = first_plan_refusal(*target, q);
      if (!reason) return std::nullopt;
      if (!first) first = std::move(reason);
    }
    return first;
  };
}

ListStarts starts_of_list(const PlanAnswer& a, const std::vector<FoundPlan>& best) {
  ListStarts list;
  for (std::size_t i = 0; i < best.size(); ++i) {
    list.by = starts_of(a, best[i]);
    if (i == 0) list.first = list.by;
    if (!list.by.any()) continue;
    list.started = i;
    break;
  }
  return list;
}

}  // namespace

Question question_of(const PlanAnswer& a, const FoundPlan& found) {
  const SearchSite& site = a.sites[found.site];
  return {site.space.workload(found.plan), found.plan, site.cluster};
}

PlanStarts starts_of(const PlanAnswer& a, const FoundPlan& p) {
  return plan_starts(a.requests[p.site], question_of(a, p), nullptr, true);
}

void seek_startable(const PlanAnswer& a, SearchWish& search, std::optional<ListStarts>& list,
                    std::size_t first_site) {
  search.further = [&, first_site](const SearchResult& found) -> PlanRefusal {
    std::vector<FoundPlan> best = found.best;
    for (FoundPlan& p : best) p.site += first_site;
    list = starts_of_list(a, best);
    if (list->started || found.proof.legal > most_searched_again) return nullptr;
    const PlanRefusal refusal = untold_by_all(a.sites[first_site]);
    if (!refusal) return nullptr;
    const bool told = std::any_of(best.begin(), best.end(),
                                  [&](const FoundPlan& p) { return !refusal(question_of(a, p)); });
    return told ? nullptr : refusal;
  };
}

}  // namespace shardwise
