#include "planner/search/plan_search.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "catalog/require.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/refine_ahead.hpp"
#include "planner/search/search_entry.hpp"
#include "planner/search/search_queue.hpp"
#include "planner/search/search_steps.hpp"

namespace shardwise {

namespace {

std::uint64_t next_site_id() {
  static std::atomic<std::uint64_t> made{0};
  return ++made;
}

}  // namespace

SearchSite::SearchSite(const ResolvedRequest& r, Method method, const Cluster& where)
    : id(next_site_id()),
      cluster(where),
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
  begun += o.begun;
  timed += o.timed;
  fitted += o.fitted;
  does_not_fit += o.does_not_fit;
  no_smaller += o.no_smaller;
  bounded += o.bounded;
  in_sets += o.in_sets;
  return *this;
}

namespace {

using Stage = SearchStage;
using Entry = SearchEntry;

// Whatever is refined beside the first entry may turn out not to be needed; forecasts cost most.
constexpr std::size_t side_by_side = 16, forecasts_side_by_side = 4;
// So many entries without a plan, and a search asks whether all that fit are refused: a proof of
// that takes a third of the time.
constexpr std::int64_t patience = 100'000;
// Entries from the front of the queue that other cores may refine before their turn.
constexpr std::size_t looked_ahead = 128;

double rent(const SearchSite& s, Seconds step) {
  return s.rates.per_hour ? for_hours(*s.rates.per_hour, step).value : 0;
}

class Search {
 public:
  Search(const std::vector<const SearchSite*>& sites, const Profile& profile,
         const SearchWish& wish)
      : sites_(sites),
        profile_(profile),
        wish_(wish),
        top_(wish.top),
        steps_(sites, profile, wish) {
    ahead_.emplace(steps_);
  }

  SearchResult run() {
    cuts_ = wish_.objective == objective_named("time");
    begin();
    SearchResult result;
    find(result.best);
    result.refused_all = refused_all_;
    queue_.each([this](const Entry& e) { count_bounded(e); });
    count_legal();
    result.proof = proof_;
    if (!wish_.further || result.best.empty()) return result;
    if (PlanRefusal refusal = wish_.further(result)) result.further = further(std::move(refusal));
    return result;
  }

  // The same queue by time, emptied: what is no smaller than the front is dropped.
  SearchResult run_front() {
    step_ = pareto_step(sites_);
    begin();
    SearchResult result;
    while (!queue_.empty()) {
      const Entry& first = *queue_.begin();
      if (of_no_use(first)) {
        count_bounded(first);
        queue_.erase(queue_.begin());
      } else if (first.stage == Stage::complete) {
        result.best.push_back(steps_.found(first));
        front_.push_back(pareto_figures(*sites_[first.site], result.best.back().forecast, *step_));
        queue_.erase(queue_.begin());
      } else {
        refine_together();
      }
    }
    // Of equal times the first need not have the least memory.
    std::erase_if(result.best, [&](const FoundPlan& p) {
      const ParetoFigures mine = pareto_figures(*sites_[p.site], p.forecast, *step_);
      return std::any_of(front_.begin(), front_.end(),
                         [&](const ParetoFigures& f) { return f.covers(mine) && !mine.covers(f); });
    });
    count_legal();
    result.proof = proof_;
    return result;
  }

 private:
  // As many as are wanted, or all there are.
  void find(std::vector<FoundPlan>& best) {
    while (!queue_.empty() && static_cast<int>(best.size()) < top_ &&
           queue_.begin()->value < wish_.below.value_or(std::numeric_limits<double>::infinity())) {
      if (queue_.begin()->stage == Stage::complete) {
        if (!steps_.refused_since(*queue_.begin())) best.push_back(steps_.found(*queue_.begin()));
        queue_.erase(queue_.begin());
        continue;
      }
      refine_together();
      if (wonders() && (refused_all_ = !fits_any())) return;
    }
  }

  bool wonders() const {
    return looked_ > patience && known_.empty() && !wondered_ && !wish_.only_whether &&
           wish_.refused;
  }

  // Of plans that are not refused.
  bool fits_any() {
    wondered_ = true;
    SearchWish any = wish_;
    any.only_whether = any.allow_tight = true;
    any.top = 1;
    any.further = nullptr;
    any.told = nullptr;
    any.known = steps_.known();
    SearchResult found;
    Search search(sites_, profile_, any);
    search.begin();
    search.find(found.best);
    return !found.best.empty();
  }

  // The best of what is left that is not refused. The bounds that were found serve it as well.
  std::optional<FoundPlan> further(PlanRefusal refusal) {
    wondered_ = true;
    ahead_.reset();
    steps_.refuse_also(std::move(refusal));
    ahead_.emplace(steps_);
    top_ = 1;
    queue_.erase_if([&](const Entry& e) { return e.timed && steps_.refused_since(e); });
    known_.clear();
    queue_.each([this](const Entry& e) {
      if (e.timed) known_.insert(e.value);
    });
    std::vector<FoundPlan> best;
    find(best);
    if (best.empty()) return std::nullopt;
    return std::move(best.front());
  }

  void count_bounded(const Entry& e) {
    if (e.stage >= Stage::laid && e.stage <= Stage::together) ++proof_.bounded;
  }

  // A front's plans come by time: the next one has to leave a step more free than all that cost no
  // more than it does at the least.
  SearchLimits limits_of(const Entry& e) const {
    SearchLimits limits;
    if (e.stage >= Stage::together) limits.within = best_known();
    limits.fit_first = e.stage == Stage::together && (step_ || wish_.objective->is_memory ||
                                                      !steps_.would_fit(e, fitted_ / bound_));
    if (!step_) return limits;
    const SearchSite& s = *sites_[e.site];
    const double usd = rent(s, e.time);
    std::int64_t free = -1;
    for (const ParetoFigures& f : front_)
      if (f.usd <= usd) free = std::max(free, f.free);
    limits.room = SearchSteps::capacity(s) - (free + 1) * *step_;
    return limits;
  }

  bool of_no_use(const Entry& e) const { return step_ && e.memory > *limits_of(e).room; }

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
    for (Entry& e : part.entries) queue_.insert(std::move(e));
    if (part.known) known_.insert(*part.known);
    if (part.mistaken) known_.erase(known_.find(*part.mistaken));
    bound_ += static_cast<double>(part.bound.value);
    fitted_ += static_cast<double>(part.fitted.value);
    proof_ += part.counts;
  }

  void refine_together() {
    std::vector<RefineAhead::One> wave;
    std::size_t forecasts = 0;
    for (auto at = queue_.begin(); at != queue_.end() && wave.size() < side_by_side &&
                                   forecasts < forecasts_side_by_side &&
                                   at->stage != Stage::complete;) {
      const auto taken = at;
      at = queue_.after(at);
      if (taken->stage == Stage::cut && !wave.empty()) continue;  // most likely never needed
      if (of_no_use(*taken) || (taken->stage >= Stage::laid && steps_.refused_since(*taken))) {
        count_bounded(*taken);
        queue_.erase(taken);
        continue;
      }
      wave.push_back({queue_.extract(taken), {}});
      wave.back().limits = limits_of(wave.back().entry);
      forecasts += wave.back().entry.stage >= Stage::together;
    }
    look_ahead();
    for (Refined& part : ahead_->refine(wave)) take(part);
    looked_ += static_cast<std::int64_t>(wave.size());
    if (wish_.told) wish_.told(looked_, [this] { return waiting(); });
  }

  // Single plans are forecast in their turn only: what is known then may make that shorter.
  void look_ahead() {
    if (!ahead_->has_helpers()) return;
    std::size_t looked = 0;
    for (auto at = queue_.begin(); at != queue_.end() && looked < looked_ahead;
         at = queue_.after(at), ++looked)
      if (!at->ahead && at->stage < Stage::together) ahead_->offer(*at, limits_of(*at));
  }

  // Those whose bound is below what as many plans as are wanted are known to reach.
  std::int64_t waiting() const {
    const std::optional<double> worst = worst_known();
    std::int64_t count = 0;
    queue_.each([&](const Entry& e) {
      count += e.stage != Stage::complete && (!worst || e.value <= *worst);
    });
    return count;
  }

  // Of as many plans as are wanted, if so many are known.
  std::optional<double> worst_known() const {
    if (step_ || static_cast<int>(known_.size()) < top_) return std::nullopt;
    return *std::next(known_.begin(), top_ - 1);
  }

  // As long as the worst of them takes.
  std::optional<Seconds> best_known() const {
    if (!cuts_ || !worst_known()) return std::nullopt;
    return Seconds(*worst_known());
  }

  void count_legal() {
    std::vector<std::int64_t> legal(sites_.size());
    on_all_cores(sites_.size(), [&](std::size_t i) { legal[i] = sites_[i]->space.legal(); });
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      proof_.legal += legal[i];
      proof_.points += sites_[i]->space.size();
    }
    proof_.in_sets =
        proof_.legal - proof_.too_large - proof_.refused - proof_.begun - proof_.bounded;
  }

  const std::vector<const SearchSite*>& sites_;
  const Profile& profile_;
  const SearchWish& wish_;
  SearchQueue queue_;
  std::multiset<double> known_;    // values of plans that were forecast, of which all that are fit
  double bound_ = 1, fitted_ = 1;  // sums of bytes, over plans whose memory was forecast
  std::int64_t looked_ = 0;
  bool wondered_ = false, refused_all_ = false;
  bool cuts_ = false;          // the value is the step's time, and no more than the best are wanted
  std::optional<Bytes> step_;  // of memory, where a front is sought
  std::vector<ParetoFigures> front_;
  SearchProof proof_;
  int top_;  // so many are wanted
  SearchSteps steps_;
  std::optional<RefineAhead> ahead_;  // its threads end before all that they refine
};

}  // namespace

Bytes pareto_step(const std::vector<const SearchSite*>& sites) {
  Bytes card;
  for (const SearchSite* s : sites) card = std::max(card, SearchSteps::capacity(*s));
  return Bytes(card.value / 32);
}

ParetoFigures pareto_figures(const SearchSite& s, const Forecast& f, Bytes step) {
  return {f.step_time.expected, f.margin.value / step.value, rent(s, f.step_time.expected)};
}

SearchResult pareto_front(const std::vector<const SearchSite*>& sites, const Profile& profile,
                          const SearchWish& wish) {
  require(!sites.empty(), "a cluster to search on");
  SearchWish front = wish;
  front.objective = objective_named("time");
  return Search(sites, profile, front).run_front();
}

SearchResult search_plans(const std::vector<const SearchSite*>& sites, const Profile& profile,
                          const SearchWish& wish) {
  require(!sites.empty() && wish.objective != nullptr, "a cluster and an objective to search for");
  return Search(sites, profile, wish).run();
}

}  // namespace shardwise
