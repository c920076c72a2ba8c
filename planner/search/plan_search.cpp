#include "planner/search/plan_search.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "catalog/require.hpp"
#include "planner/cost.hpp"
#include "planner/judgement.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/known_layers.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/search_entry.hpp"
#include "planner/spread_fit.hpp"
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
using Progress = SearchProgress;

// Whatever is refined beside the first entry may turn out not to be needed; forecasts cost most.
constexpr std::size_t side_by_side = 16, forecasts_side_by_side = 4;

class Search {
 public:
  Search(const std::vector<const SearchSite*>& sites, const Profile& profile,
         const SearchWish& wish)
      : sites_(sites), profile_(profile), wish_(wish) {
    for (const SearchSite* s : sites) collectives_.emplace_back(s->cluster, profile.links);
  }

  SearchResult run() {
    cuts_ = wish_.objective == objective_named("time");
    begin();
    SearchResult result;
    while (!queue_.empty() && static_cast<int>(result.best.size()) < wish_.top) {
      if (queue_.begin()->stage == Stage::complete) {
        result.best.push_back(found(*queue_.begin()));
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
      const Entry first = *queue_.begin();
      if (covered(front, first)) {
        count_bounded(first);
        queue_.erase(queue_.begin());
      } else if (first.stage == Stage::complete) {
        result.best.push_back(found(first));
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
    return {e.time, e.progress->memory - capacity(s), usd};
  }

  bool covered(const std::vector<ParetoFigures>& front, const Entry& e) const {
    const ParetoFigures least = figures(e);
    return std::any_of(front.begin(), front.end(),
                       [&](const ParetoFigures& f) { return f.covers(least); });
  }

  const CollectiveModel& collectives(const SearchSite& s) const {
    const auto at = std::find(sites_.begin(), sites_.end(), &s);
    return collectives_[static_cast<std::size_t>(at - sites_.begin())];
  }

  BoundSite bound_site(const SearchSite& s, const ParallelPlan& p) const {
    return {s.space.workload(p), s.cluster, profile_, collectives(s)};
  }

  // Sets of plans: everything up to the microbatch, with the least that recomputation can add.
  void begin() {
    std::vector<std::pair<std::size_t, PlanPoint>> outer;
    for (std::size_t s = 0; s < sites_.size(); ++s)
      for (const PlanPoint& x : sites_[s]->space.outer_points()) outer.emplace_back(s, x);
    std::vector<Refined> parts(outer.size());
    on_all_cores(outer.size(), [&](std::size_t i) {
      Entry e;
      e.site = outer[i].first;
      e.point = outer[i].second;
      add_set(e, "none", Stage::layers, parts[i]);
    });
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
      wave.push_back(queue_.extract(taken).value());
      forecasts += wave.back().stage >= Stage::plan;
    }
    std::vector<Refined> parts(wave.size());
    on_all_cores(wave.size(), [&](std::size_t i) { refine(wave[i], parts[i]); });
    for (Refined& part : parts) take(part);
    looked_ += static_cast<std::int64_t>(wave.size());
    if (wish_.told) wish_.told(looked_, [this] { return waiting(); });
  }

  // Those whose bound is below what as many plans as are wanted are known to reach.
  std::int64_t waiting() const {
    const bool enough = static_cast<int>(known_.size()) == wish_.top;
    return std::count_if(queue_.begin(), queue_.end(), [&](const Entry& e) {
      return e.stage != Stage::complete && (!enough || e.value <= *known_.rbegin());
    });
  }

  void refine(const Entry& e, Refined& to) {
    switch (e.stage) {
      case Stage::layers:
        return refine_layers(e, to);
      case Stage::recompute:
        return refine_recompute(e, to);
      case Stage::pipelines:
        return refine_pipelines(e, to);
      case Stage::variants:
        return refine_variants(e, to);
      case Stage::laid:
        return refine_laid(e, to);
      case Stage::plan:
      case Stage::cut:
      case Stage::half:
        return refine_plan(e, to);
      case Stage::complete:
        break;
    }
    require(false, "complete plans are taken, not refined");
  }

  // The plan of a set, laid over the cluster without stages.
  ParallelPlan unstaged(const SearchSite& s, const PlanPoint& x, std::string recompute) const {
    ParallelPlan p = s.space.layers_of(x);
    p.recompute = std::move(recompute);
    return p;
  }

  void add_set(Entry e, const std::string& recompute, Stage stage, Refined& to) {
    const SearchSite& s = *sites_[e.site];
    e.progress = std::make_shared<Progress>();
    Progress& g = *e.progress;
    g.plan = unstaged(s, e.point, recompute);
    const BoundSite site = bound_site(s, g.plan);
    g.layers = layers_.of(e.site, site, g.plan);
    g.time = mean_work_bound(*g.layers, g.plan, s.space.batch());
    g.memory = mean_memory_bound(site, *g.layers, g.plan, s.space.most_stages(e.point));
    if (!may_fit(s, g.plan, g.memory)) return;
    put(std::move(e), stage, to);
  }

  // Puts an entry back where its bounds now are.
  void put(Entry e, Stage stage, Refined& to) const {
    const SearchSite& s = *sites_[e.site];
    const Progress& g = *e.progress;
    e.stage = stage;
    e.time = g.time;
    e.value = wish_.objective->value(s.rates, g.time, g.memory - capacity(s));
    to.entries.push_back(std::move(e));
  }

  static Bytes capacity(const SearchSite& s) {
    Bytes most;
    for (const NodeGroup& g : s.cluster.groups) most = std::max(most, g.gpu.usable_memory());
    return most;
  }

  // The most that a plan's bound of memory may be, by the rules of is_wanted().
  Bytes room_for(const SearchSite& s, const ParallelPlan& p) const {
    const auto most = static_cast<double>(capacity(s).value);
    double room = std::min(1.0, wish_.memory_fraction) * most;
    // On unequal GPUs the fullest one need not be the one that has most memory in use.
    if (!wish_.allow_tight && s.cluster.groups.size() == 1) {
      const SpreadKey key = spread_key(s.space.workload(p).method, p, s.cluster);
      const SpreadRow spread = spread_of(profile_.spread.memory, key);
      room = std::min(room, most / std::max(1.0, spread.high));
    }
    return ceil_bytes(room);
  }
  bool may_fit(const SearchSite& s, const ParallelPlan& p, Bytes memory) const {
    return memory <= room_for(s, p);
  }

  void refine_layers(const Entry& e, Refined& to) {
    const SearchSite& s = *sites_[e.site];
    for (std::size_t i = 0; i < s.space.values(PlanAxis::recompute); ++i) {
      Entry one = e;
      one.point[static_cast<std::size_t>(PlanAxis::recompute)] = static_cast<std::uint16_t>(i);
      add_set(one, s.space.shown_value(PlanAxis::recompute, i), Stage::recompute, to);
    }
  }

  void refine_recompute(const Entry& e, Refined& to) {
    const SearchSite& s = *sites_[e.site];
    for (const std::uint16_t depth : s.space.pipeline_positions(e.point)) {
      PlanPoint x = e.point;
      x[static_cast<std::size_t>(PlanAxis::pipeline)] = depth;
      const auto known = pipelines_.of(e.site, s.space, x);
      if (known->empty() || !s.space.legal_with(x, known->front().variant)) continue;
      std::vector<std::uint16_t> shards{0};
      for (const std::uint16_t i : s.space.shard_positions(*s.space.plan(x))) shards.push_back(i);
      for (const std::uint16_t i : shards) {
        Entry one = e;
        one.point = x;
        one.point[static_cast<std::size_t>(PlanAxis::shard_group)] = i;
        one.progress = std::make_shared<Progress>(*e.progress);
        Progress& g = *one.progress;
        g.plan = *s.space.plan(one.point);
        const BoundSite site = bound_site(s, g.plan);
        g.memory = std::max(g.memory, stage_mean_bound(site, *g.layers, g.plan));
        if (may_fit(s, g.plan, g.memory)) put(std::move(one), Stage::pipelines, to);
      }
    }
  }

  // All variants of one pipeline, the fastest by its bound first.
  void refine_pipelines(const Entry& e, Refined& to) {
    const SearchSite& s = *sites_[e.site];
    Entry one = e;
    one.progress = std::make_shared<Progress>(*e.progress);
    Progress& g = *one.progress;
    const BoundSite site = bound_site(s, g.plan);
    const StateBounds states(site, *g.layers, g.plan);
    const Bytes outside = outside_tensors(site), room = room_for(s, g.plan);
    auto list = std::make_shared<VariantList>();
    const auto known = pipelines_.of(e.site, s.space, e.point);
    for (const PipelineSketch& sketch : *known) {
      if (!s.space.legal_in_chunks(e.point, sketch.variant)) continue;
      if (sketched_memory(sketch, *g.layers, states, g.plan, outside) > room)
        ++to.counts.too_large;
      else
        list->all.push_back({std::max(g.time, sketched_time(sketch, *g.layers)), sketch.variant});
    }
    if (list->all.empty()) return;
    const Seconds least = stream_bound(site, *g.layers, g.plan);
    for (VariantList::One& one_of : list->all) one_of.time = std::max(one_of.time, least);
    std::stable_sort(list->all.begin(), list->all.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    g.variants = std::move(list);
    put_variant(std::move(one), to);
  }

  // A list stands in the queue for the first variant that is left of it.
  void put_variant(Entry e, Refined& to) const {
    Progress& g = *e.progress;
    if (g.next == g.variants->all.size()) return;
    g.time = g.variants->all[g.next].time;
    e.point = PlanSpace::with(e.point, g.variants->all[g.next].variant);
    put(std::move(e), Stage::variants, to);
  }

  void refine_variants(const Entry& e, Refined& to) {
    const SearchSite& s = *sites_[e.site];
    Entry rest = e;
    rest.progress = std::make_shared<Progress>(*e.progress);
    ++rest.progress->next;
    put_variant(std::move(rest), to);
    Entry one = e;
    one.progress = std::make_shared<Progress>(*e.progress);
    Progress& g = *one.progress;
    g.variants.reset();
    g.plan = *s.space.plan(one.point);
    const BoundSite site = bound_site(s, g.plan);
    g.memory = std::max(g.memory, states_bound(site, *g.layers, g.plan));
    if (may_fit(s, g.plan, g.memory)) g.memory = memory_bound(site, *g.layers, g.plan, counts_);
    if (!may_fit(s, g.plan, g.memory)) {
      ++to.counts.too_large;
      return;
    }
    g.time = std::max(g.time, pipeline_bound(*g.layers, g.plan));
    put(std::move(one), Stage::laid, to);
  }

  void refine_laid(const Entry& e, Refined& to) {
    const SearchSite& s = *sites_[e.site];
    Entry one = e;
    one.progress = std::make_shared<Progress>(*e.progress);
    Progress& g = *one.progress;
    g.time = std::max(g.time, costed_bound(bound_site(s, g.plan), *g.layers, g.plan, reductions_));
    put(std::move(one), Stage::plan, to);
  }

  // As long as the worst of as many plans as are wanted takes, if so many are known.
  std::optional<Seconds> best_known() const {
    if (!cuts_ || static_cast<int>(known_.size()) < wish_.top) return std::nullopt;
    return Seconds(*known_.rbegin());
  }

  void refine_plan(const Entry& e, Refined& to) const {
    const SearchSite& s = *sites_[e.site];
    Entry one = e;
    one.progress = std::make_shared<Progress>(*e.progress);
    Progress& g = *one.progress;
    const Question q{s.space.workload(g.plan), g.plan, s.cluster};
    if (e.stage == Stage::plan && wish_.refused && wish_.refused(q)) {
      ++to.counts.refused;
      return;
    }
    const bool memory = wish_.objective->memory_first == (e.stage != Stage::half);
    const auto within = e.stage == Stage::plan && !memory ? best_known() : std::nullopt;
    auto f =
        forecast(q, profile_,
                 {.time = !memory, .memory = memory, .only_if_fits = true, .only_within = within});
    require(static_cast<bool>(f), "a legal plan has a forecast");
    if (e.stage != Stage::cut) ++(memory ? to.counts.fitted : to.counts.timed);
    if (within && f->step_time.expected > *within) {
      g.time = f->step_time.expected;
      put(std::move(one), Stage::cut, to);
      return;
    }
    if (memory) {
      if (!is_wanted(*f, wish_)) {
        ++to.counts.does_not_fit;
        return;
      }
      const StageForecast& worst = f->stages[static_cast<std::size_t>(f->worst_stage)];
      g.memory = capacity(s) - (worst.capacity - worst.peak.device);
      f->plays.reset();
    } else {
      g.time = f->step_time.expected;
    }
    (memory ? g.fitted : g.timed) = std::make_shared<Forecast>(*std::move(f));
    put(std::move(one), e.stage == Stage::half ? Stage::complete : Stage::half, to);
  }

  FoundPlan found(const Entry& e) const {
    const Progress& g = *e.progress;
    FoundPlan one{e.site, e.point, g.plan, *g.fitted, e.value};
    const Forecast& t = *g.timed;
    Forecast& f = one.forecast;
    f.step_time = t.step_time;
    f.tokens_per_s = t.tokens_per_s;
    f.mfu = t.mfu;
    f.breakdown = t.breakdown;
    f.bubble_fraction = t.bubble_fraction;
    f.slowest = t.slowest;
    f.trust = t.trust;
    f.tasks = t.tasks;
    f.notes = t.notes;
    return one;
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
  const Profile& profile_;
  const SearchWish& wish_;
  std::vector<CollectiveModel> collectives_;  // of each site
  std::set<Entry> queue_;
  std::multiset<double> known_;  // the best values of plans that were forecast
  std::int64_t looked_ = 0;
  bool cuts_ = false;  // the value is the step's time, and no more than the best are wanted
  InFlightCounts counts_;
  LastReductions reductions_;
  KnownPipelines pipelines_;
  KnownLayers layers_;
  SearchProof proof_;
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
