#include "planner/search/plan_search.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "catalog/require.hpp"
#include "planner/cost.hpp"
#include "planner/judgement.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/refine_ahead.hpp"
#include "planner/search/search_entry.hpp"
#include "planner/search/search_steps.hpp"
#include "planner/workload_choice.hpp"

namespace shardwise {

SearchSite::SearchSite(const ResolvedRequest& r, Method method, const Cluster& where)
    : cluster(where),
      without_zero(choose_workload(r, method, cluster, 0).workload),
      with_zero(choose_workload(r, method, cluster, 1).workload),
      notes(choose_workload(r, method, cluster, 0).notes),
      space(r, without_zero, with_zero, cluster) {}

bool is_wanted(const Forecast& f, const SearchWish& wish) {
  const Verdict verdict = judged(f, wish.host_ram_stated);
  if (verdict == Verdict::does_not_fit) return false;
  if (verdict == Verdict::tight && !wish.allow_tight) return false;
  return std::all_of(f.stages.begin(), f.stages.end(), [&](const StageForecast& s) {
    return static_cast<double>(s.peak.device.value) <=
           wish.memory_fraction * static_cast<double>(s.capacity.value);
  });
}

SearchProof& SearchProof::operator+=(const SearchProof& o) {
  points += o.points;
  legal += o.legal;
  too_large += o.too_large;
  refused += o.refused;
  timed += o.timed;
  fitted += o.fitted;
  does_not_fit += o.does_not_fit;
  bounded += o.bounded;
  in_sets += o.in_sets;
  return *this;
}

namespace {

using Stage = SearchStage;
using Entry = SearchEntry;

// Whatever is refined beside the first entry may turn out not to be needed; forecasts cost most.
constexpr std::size_t side_by_side = 16, forecasts_side_by_side = 4;
// Entries from the front of the queue that other cores may refine before their turn.
constexpr std::size_t looked_ahead = 128;

class Search {
 public:
  Search(const std::vector<const SearchSite*>& sites, const Profile& profile,
         const SearchWish& wish)
      : sites_(sites), wish_(wish), steps_(sites, profile, wish), ahead_(steps_) {}

  SearchResult run() {
    cuts_ = wish_.objective == objective_named("time");
    begin();
    SearchResult result;
    while (!queue_.empty() && static_cast<int>(result.best.size()) < wish_.top) {
      if (queue_.begin()->stage == Stage::complete) {
        result.best.push_back(steps_.found(*queue_.begin()));
        queue_.erase(queue_.begin());
        continue;
      }
      refine_together();
    }
    for (const Entry& e : queue_) count_bounded(e);
    count_legal();
    result.proof = proof_;
    return result;
  }

  // The same queue by time, emptied: what the front covers by its bounds is dropped.
  SearchResult run_front() {
    begin();
    SearchResult result;
    std::vector<ParetoFigures> front;
    while (!queue_.empty()) {
      const Entry& first = *queue_.begin();
      if (covered(front, first)) {
        count_bounded(first);
        queue_.erase(queue_.begin());
      } else if (first.stage == Stage::complete) {
        result.best.push_back(steps_.found(first));
        front.push_back(figures(first));
        queue_.erase(queue_.begin());
      } else {
        refine_together();
      }
    }
    // Of equal times the first need not have the least memory.
    std::erase_if(result.best, [&](const FoundPlan& p) {
      const ParetoFigures mine = pareto_figures(*sites_[p.site], p.forecast);
      return std::any_of(front.begin(), front.end(),
                         [&](const ParetoFigures& f) { return f.covers(mine) && !mine.covers(f); });
    });
    count_legal();
    result.proof = proof_;
    return result;
  }

 private:
  void count_bounded(const Entry& e) {
    if (e.stage == Stage::laid || e.stage == Stage::plan) ++proof_.bounded;
  }

  ParetoFigures figures(const Entry& e) const {
    const SearchSite& s = *sites_[e.site];
    const double usd = s.rates.per_hour ? for_hours(*s.rates.per_hour, e.time).value : 0;
    return {e.time, e.memory - SearchSteps::capacity(s), usd};
  }

  bool covered(const std::vector<ParetoFigures>& front, const Entry& e) const {
    const ParetoFigures least = figures(e);
    return std::any_of(front.begin(), front.end(),
                       [&](const ParetoFigures& f) { return f.covers(least); });
  }

  void begin() {
    std::vector<std::pair<std::size_t, PlanPoint>> outer;
    for (std::size_t s = 0; s < sites_.size(); ++s)
      for (const PlanPoint& x : sites_[s]->space.outer_points()) outer.emplace_back(s, x);
    std::vector<Refined> parts(outer.size());
    on_all_cores(outer.size(),
                 [&](std::size_t i) { steps_.begin(outer[i].first, outer[i].second, parts[i]); });
    for (Refined& part : parts) take(part);
  }

  void take(Refined& part) {
    for (Entry& e : part.entries) {
      if (e.stage == Stage::half) known_.insert(e.value);
      queue_.insert(std::move(e));
    }
    while (static_cast<int>(known_.size()) > wish_.top) known_.erase(std::prev(known_.end()));
    proof_ += part.counts;
  }

  void refine_together() {
    std::vector<Entry> wave;
    std::size_t forecasts = 0;
    for (auto at = queue_.begin(); at != queue_.end() && wave.size() < side_by_side &&
                                   forecasts < forecasts_side_by_side &&
                                   at->stage != Stage::complete;) {
      const auto taken = at++;
      if (taken->stage == Stage::cut && !wave.empty()) continue;  // most likely never needed
      wave.push_back(std::move(queue_.extract(taken).value()));
      forecasts += wave.back().stage >= Stage::plan;
    }
    look_ahead();
    for (Refined& part : ahead_.refine(wave, best_known())) take(part);
    looked_ += static_cast<std::int64_t>(wave.size());
    if (wish_.told) wish_.told(looked_, [this] { return waiting(); });
  }

  // Single plans are forecast in their turn only: what is known then may make that shorter.
  void look_ahead() {
    if (!ahead_.has_helpers()) return;
    std::size_t looked = 0;
    for (auto at = queue_.begin(); at != queue_.end() && looked < looked_ahead; ++at, ++looked)
      if (!at->ahead && at->stage < Stage::plan) ahead_.offer(*at);
  }

  // Those whose bound is below what as many plans as are wanted are known to reach.
  std::int64_t waiting() const {
    const bool enough = static_cast<int>(known_.size()) == wish_.top;
    return std::count_if(queue_.begin(), queue_.end(), [&](const Entry& e) {
      return e.stage != Stage::complete && (!enough || e.value <= *known_.rbegin());
    });
  }

  // As long as the worst of as many plans as are wanted takes, if so many are known.
  std::optional<Seconds> best_known() const {
    if (!cuts_ || static_cast<int>(known_.size()) < wish_.top) return std::nullopt;
    return Seconds(*known_.rbegin());
  }

  void count_legal() {
    std::vector<std::int64_t> legal(sites_.size());
    on_all_cores(sites_.size(), [&](std::size_t i) { legal[i] = sites_[i]->space.legal(); });
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      proof_.legal += legal[i];
      proof_.points += sites_[i]->space.size();
    }
    const std::int64_t begun = wish_.objective->memory_first ? proof_.fitted : proof_.timed;
    proof_.in_sets = proof_.legal - proof_.too_large - proof_.refused - begun - proof_.bounded;
  }

  const std::vector<const SearchSite*>& sites_;
  const SearchWish& wish_;
  std::set<Entry> queue_;
  std::multiset<double> known_;  // the best values of plans that were forecast
  std::int64_t looked_ = 0;
  bool cuts_ = false;  // the value is the step's time, and no more than the best are wanted
  SearchProof proof_;
  SearchSteps steps_;
  RefineAhead ahead_;  // its threads end before all that they refine
};

}  // namespace

ParetoFigures pareto_figures(const SearchSite& s, const Forecast& f) {
  const double usd =
      s.rates.per_hour ? for_hours(*s.rates.per_hour, f.step_time.expected).value : 0;
  return {f.step_time.expected, Bytes(-f.margin.value), usd};
}

SearchResult pareto_front(const std::vector<const SearchSite*>& sites, const Profile& profile,
                          const SearchWish& wish) {
  require(!sites.empty(), "a cluster to search on");
  SearchWish by_time = wish;
  by_time.objective = objective_named("time");
  return Search(sites, profile, by_time).run_front();
}

SearchResult search_plans(const std::vector<const SearchSite*>& sites, const Profile& profile,
                          const SearchWish& wish) {
  require(!sites.empty() && wish.objective != nullptr, "a cluster and an objective to search for");
  return Search(sites, profile, wish).run();
}

}  // namespace shardwise
