#include "planner/search/search_steps.hpp"

#include <algorithm>
#include <utility>

#include "catalog/require.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/forecast/spread_key.hpp"

namespace shardwise {
namespace {

using Stage = SearchStage;
using Entry = SearchEntry;

// The plan of a set, laid over the cluster without stages.
ParallelPlan unstaged(const SearchSite& s, const PlanPoint& x, std::string recompute) {
  ParallelPlan p = s.space.layers_of(x);
  p.recompute = std::move(recompute);
  return p;
}

}  // namespace

SearchSteps::SearchSteps(const std::vector<const SearchSite*>& sites, const Profile& profile,
                         const SearchWish& wish)
    : sites_(sites),
      profile_(profile),
      wish_(wish),
      refused_(wish.refused),
      known_(known_on(sites, profile, wish.known)) {}

void SearchSteps::refuse_also(PlanRefusal refusal) {
  refused_since_ = std::move(refusal);
  refused_ = [before = wish_.refused, this](const Question& q) {
    auto reason = before ? before(q) : std::nullopt;
    return reason ? reason : refused_since_(q);
  };
}

bool SearchSteps::refused_since(const Entry& e) const {
  if (!refused_since_) return false;
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = *s.space.plan(e.point);
  return refused_since_({s.space.workload(p), p, s.cluster}).has_value();
}

const CollectiveModel& SearchSteps::collectives(const SearchSite& s) const {
  const auto at = std::find(sites_.begin(), sites_.end(), &s);
  return known_->collectives[static_cast<std::size_t>(at - sites_.begin())];
}

BoundSite SearchSteps::bound_site(const SearchSite& s, const ParallelPlan& p) const {
  return {s.space.workload(p), s.cluster, profile_, collectives(s)};
}

Bytes SearchSteps::capacity(const SearchSite& s) {
  Bytes most;
  for (const NodeGroup& g : s.cluster.groups) most = std::max(most, g.gpu.usable_memory());
  return most;
}

// The most that a plan's bound of memory may be, by the rules of is_wanted() and the limits.
Bytes SearchSteps::room_for(const SearchSite& s, const ParallelPlan& p,
                            const SearchLimits& limits) const {
  const auto most = static_cast<double>(capacity(s).value);
  double room = std::min(1.0, wish_.memory_fraction) * most;
  // On unequal GPUs the fullest one need not be the one that has most memory in use.
  if (!wish_.allow_tight && s.cluster.groups.size() == 1) {
    const SpreadKey key = spread_key(s.space.workload(p), p, s.cluster);
    const SpreadRow spread = spread_of(profile_.spread.memory, key);
    room = std::min(room, most / std::max(1.0, spread.high));
  }
  return std::min(ceil_bytes(room), limits.room.value_or(capacity(s)));
}

bool SearchSteps::would_fit(const Entry& e, double rise) const {
  const SearchSite& s = *sites_[e.site];
  return rise * static_cast<double>(e.memory.value) <=
         static_cast<double>(room_for(s, *s.space.plan(e.point), {}).value);
}

void SearchSteps::begin(std::size_t site, const PlanPoint& point, Refined& to) {
  Entry e;
  e.site = static_cast<std::uint32_t>(site);
  e.point = point;
  // What recomputes nothing takes least time, but not least memory.
  add_set(std::move(e), "none", Stage::layers, {}, to);
}

void SearchSteps::refine(const Entry& e, const SearchLimits& limits, Refined& to) {
  switch (e.stage) {
    case Stage::layers:
      return refine_layers(e, limits, to);
    case Stage::recompute:
      return refine_recompute(e, limits, to);
    case Stage::streams:
      return refine_streams(e, to);
    case Stage::pipelines:
      return refine_pipelines(e, limits, to);
    case Stage::variants:
      return refine_variants(e, limits, to);
    case Stage::laid:
      return refine_plan(e, costed_bound, Stage::plan, to);
    case Stage::plan:
      return refine_plan(e, together_bound, Stage::together, to);
    case Stage::together:
    case Stage::cut:
    case Stage::half:
      return forecast_plan(e, limits, to);
    case Stage::complete:
      break;
  }
  require(false, "complete plans are taken, not refined");
}

void SearchSteps::add_set(Entry e, const std::string& recompute, Stage stage,
                          const SearchLimits& limits, Refined& to) {
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = unstaged(s, e.point, recompute);
  const BoundSite site = bound_site(s, p);
  e.layers = known_->layers.of(e.site, site, p);
  const int most_stages = s.space.most_stages(e.point);
  e.time = mean_work_bound(*e.layers, p, s.space.batch()) +
           mean_host_step_bound(site, *e.layers, p, most_stages);
  const auto memory_bound = stage == Stage::layers ? mean_states_bound : mean_memory_bound;
  e.memory = memory_bound(site, *e.layers, p, most_stages);
  if (e.memory <= room_for(s, p, limits)) put(std::move(e), stage, to);
}

// Puts an entry back where its bounds now are.
void SearchSteps::put(Entry e, Stage stage, Refined& to) const {
  const SearchSite& s = *sites_[e.site];
  e.stage = stage;
  e.value = wish_.objective->value(s.rates, e.time, e.memory - capacity(s));
  e.ahead.reset();
  to.entries.push_back(std::move(e));
}

void SearchSteps::refine_layers(const Entry& e, const SearchLimits& limits, Refined& to) {
  const SearchSite& s = *sites_[e.site];
  for (std::size_t i = 0; i < s.space.values(PlanAxis::recompute); ++i) {
    Entry one = e;
    one.point[static_cast<std::size_t>(PlanAxis::recompute)] = static_cast<std::uint16_t>(i);
    add_set(std::move(one), s.space.shown_value(PlanAxis::recompute, i), Stage::recompute, limits,
            to);
  }
}

void SearchSteps::refine_recompute(const Entry& e, const SearchLimits& limits, Refined& to) {
  const SearchSite& s = *sites_[e.site];
  for (const std::uint16_t depth : s.space.pipeline_positions(e.point)) {
    PlanPoint x = e.point;
    x[static_cast<std::size_t>(PlanAxis::pipeline)] = depth;
    const auto known = known_->pipelines.of(e.site, s.space, x);
    if (known->empty() || !s.space.legal_with(x, known->front().variant)) continue;
    std::vector<std::uint16_t> shards{0};
    for (const std::uint16_t i : s.space.shard_positions(*s.space.plan(x))) shards.push_back(i);
    for (const std::uint16_t i : shards) {
      Entry one = e;
      one.point = x;
      one.point[static_cast<std::size_t>(PlanAxis::shard_group)] = i;
      if (wish_.only_whether && refuses_all(s, one.point, *known)) continue;
      const ParallelPlan p = *s.space.plan(one.point);
      one.memory = std::max(one.memory, stage_mean_bound(bound_site(s, p), *one.layers, p));
      if (one.memory <= room_for(s, p, limits)) put(std::move(one), Stage::streams, to);
    }
  }
}

void SearchSteps::refine_streams(const Entry& e, Refined& to) const {
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = *s.space.plan(e.point);
  Entry one = e;
  one.unlaid = e.time;
  one.time = std::max(e.time, stream_bound(bound_site(s, p), *e.layers, p));
  put(std::move(one), Stage::pipelines, to);
}

std::unique_ptr<Question> SearchSteps::QuestionPool::take(const SearchSite& s, const Workload& w) {
  {
    const std::lock_guard lock(mutex_);
    auto& free = free_[&w];
    if (!free.empty()) {
      std::unique_ptr<Question> one = std::move(free.back());
      free.pop_back();
      return one;
    }
  }
  return std::make_unique<Question>(Question{w, {}, s.cluster});
}

void SearchSteps::QuestionPool::give_back(const Workload& w, std::unique_ptr<Question> question) {
  const std::lock_guard lock(mutex_);
  free_[&w].push_back(std::move(question));
}

// Asks about one pipeline's variants in turn.
class SearchSteps::RefusedVariants {
 public:
  RefusedVariants(const SearchSite& site, const PlanRefusal& refusal, const PlanPoint& point,
                  QuestionPool& pool)
      : site_(site), refusal_(refusal), point_(point), pool_(pool) {
    if (!refusal) return;
    workload_ = &site.space.workload(*site.space.plan(point));
    question_ = pool.take(site, *workload_);
  }
  RefusedVariants(const RefusedVariants&) = delete;
  RefusedVariants& operator=(const RefusedVariants&) = delete;
  ~RefusedVariants() {
    if (question_) pool_.give_back(*workload_, std::move(question_));
  }
  bool refused(const PipelineVariant& variant) {
    if (!question_) return false;
    question_->plan = *site_.space.plan(PlanSpace::with(point_, variant));
    return refusal_(*question_).has_value();
  }

 private:
  const SearchSite& site_;
  const PlanRefusal& refusal_;
  PlanPoint point_;
  QuestionPool& pool_;
  const Workload* workload_ = nullptr;
  std::unique_ptr<Question> question_;
};

bool SearchSteps::refuses_all(const SearchSite& s, const PlanPoint& x,
                              const std::vector<PipelineSketch>& pipelines) {
  if (!refused_) return false;
  RefusedVariants framework(s, refused_, x, questions_);
  return std::all_of(pipelines.begin(), pipelines.end(), [&](const PipelineSketch& sketch) {
    return !s.space.legal_in_chunks(x, sketch.variant) || framework.refused(sketch.variant);
  });
}

// All variants of one pipeline. The list stands in the queue for the fastest of them by its bound;
// most lists are never opened, so no more of it is kept.
void SearchSteps::refine_pipelines(const Entry& e, const SearchLimits& limits, Refined& to) {
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = *s.space.plan(e.point);
  const BoundSite site = bound_site(s, p);
  const StateBounds states(site, *e.layers, p, layer_states(site, *e.layers, p));
  const DataTraffic traffic = data_traffic(site, *e.layers, p);
  const Bytes outside = outside_tensors(site), room = room_for(s, p, limits);
  const auto known = known_->pipelines.of(e.site, s.space, e.point);
  RefusedVariants framework(s, refused_, e.point, questions_);
  const PipelineSketch* first = nullptr;
  Seconds least;
  for (const PipelineSketch& sketch : *known) {
    if (!s.space.legal_in_chunks(e.point, sketch.variant)) continue;
    if (framework.refused(sketch.variant)) {
      ++to.counts.refused;
      continue;
    }
    if (sketched_memory(sketch, *e.layers, states, p, outside) > room) {
      ++to.counts.too_large;
      continue;
    }
    const auto within = first != nullptr ? std::optional(least) : std::nullopt;
    const Seconds time = std::max(e.unlaid, sketched_time(sketch, *e.layers, traffic, within));
    if (first != nullptr && time >= least) continue;
    first = &sketch;
    least = time;
  }
  if (first == nullptr) return;
  Entry one = e;
  one.time = std::max(least, e.time);
  one.point = PlanSpace::with(e.point, first->variant);
  put(std::move(one), Stage::variants, to);
}

// The fastest by its bound first. Those are told apart before the bound of the stream, which is the
// same for all, raises them.
std::shared_ptr<const VariantList> SearchSteps::variants_of(const Entry& e,
                                                            const SearchLimits& limits) {
  const SearchSite& s = *sites_[e.site];
  const PlanPoint x = PlanSpace::with(e.point, {});
  const ParallelPlan p = *s.space.plan(x);
  const BoundSite site = bound_site(s, p);
  auto list = std::make_shared<VariantList>();
  list->states = layer_states(site, *e.layers, p);
  // Of a variant: layers that are split over a box say so, and send nothing by NCCL.
  list->communicators = communicators_of(site, *s.space.plan(e.point));
  list->traffic = data_traffic(site, *e.layers, p);
  const StateBounds states(site, *e.layers, p, list->states);
  const Bytes outside = outside_tensors(site), room = room_for(s, p, limits);
  const auto known = known_->pipelines.of(e.site, s.space, x);
  list->all.reserve(known->size());
  RefusedVariants framework(s, refused_, x, questions_);
  for (const PipelineSketch& sketch : *known)
    if (s.space.legal_in_chunks(x, sketch.variant) && !framework.refused(sketch.variant) &&
        sketched_memory(sketch, *e.layers, states, p, outside) + list->communicators <= room)
      list->all.push_back(
          {std::max(e.unlaid, sketched_time(sketch, *e.layers, list->traffic)), sketch.variant});
  std::stable_sort(list->all.begin(), list->all.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  for (VariantList::One& one : list->all) one.time = std::max(one.time, e.time);
  return list;
}

void SearchSteps::refine_variants(const Entry& e, const SearchLimits& limits, Refined& to) {
  const SearchSite& s = *sites_[e.site];
  Entry rest = e;
  if (!rest.variants) {
    rest.variants = variants_of(e, limits);
    const auto& all = rest.variants->all;
    if (all.empty()) return;
    // The one that stood for the list has too little room, as more is known of that by now.
    if (const PlanPoint x = PlanSpace::with(e.point, all.front().variant); x != e.point) {
      rest.point = x;
      rest.time = all.front().time;
      return put(std::move(rest), Stage::variants, to);
    }
  }
  const std::shared_ptr<const VariantList> list = rest.variants;
  RefusedVariants since(s, refused_since_, e.point, questions_);  // the list may be older
  do ++rest.next;
  while (rest.next < list->all.size() && since.refused(list->all[rest.next].variant));
  if (rest.next < list->all.size()) {
    const VariantList::One& following = list->all[rest.next];
    rest.time = following.time;
    rest.point = PlanSpace::with(e.point, following.variant);
    put(std::move(rest), Stage::variants, to);
  }
  Entry one = e;
  one.variants.reset();
  const ParallelPlan p = *s.space.plan(one.point);
  const BoundSite site = bound_site(s, p);
  const Bytes room = room_for(s, p, limits);
  if (one.memory <= room)
    one.memory =
        memory_bound(site, *one.layers, p, known_->counts, list->states) + list->communicators;
  if (one.memory > room) {
    ++to.counts.too_large;
    return;
  }
  one.time = std::max(one.time, pipeline_bound(*one.layers, p, list->traffic));
  put(std::move(one), Stage::laid, to);
}

void SearchSteps::refine_plan(const Entry& e, TimeBound bound, Stage next, Refined& to) {
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = *s.space.plan(e.point);
  Entry one = e;
  one.time = std::max(e.time, bound(bound_site(s, p), *e.layers, p, known_->slots));
  put(std::move(one), next, to);
}

void SearchSteps::forecast_plan(const Entry& e, const SearchLimits& limits, Refined& to) const {
  if (e.stage == Stage::together) ++to.counts.begun;
  const bool fit = e.timed || (e.stage == Stage::together && limits.fit_first);
  return fit ? forecast_fit(e, limits, to) : forecast_step(e, limits, to);
}

void SearchSteps::forecast_fit(const Entry& e, const SearchLimits& limits, Refined& to) const {
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = *s.space.plan(e.point);
  const KnownCosts known{&collectives(s), nullptr, nullptr};
  auto f = forecast(
      {s.space.workload(p), p, s.cluster}, profile_,
      {.time = false, .only_if_fits = true, .give_up_above = limits.room, .known = &known});
  require(static_cast<bool>(f), "a legal plan has a forecast");
  ++to.counts.fitted;
  Entry one = e;
  const StageForecast& worst = f->worst();
  one.memory = capacity(s) - (worst.capacity - worst.peak.device);
  to.bound = e.memory;
  to.fitted = one.memory;
  const bool wanted = is_wanted(*f, wish_);
  if (!wanted || (limits.room && one.memory > *limits.room)) {
    ++(wanted ? to.counts.no_smaller : to.counts.does_not_fit);
    if (e.timed) to.mistaken = e.value;
    return;
  }
  f->plays.reset();
  one.fitted = std::make_shared<Forecast>(*std::move(f));
  put(std::move(one), e.timed ? Stage::complete : Stage::half, to);
}

// What was cut is played to its end when it comes up again.
void SearchSteps::forecast_step(const Entry& e, const SearchLimits& limits, Refined& to) const {
  const SearchSite& s = *sites_[e.site];
  const ParallelPlan p = *s.space.plan(e.point);
  const auto within = e.stage == Stage::cut ? std::nullopt : limits.within;
  const BoundSite site = bound_site(s, p);
  const KnownCosts known{&site.collectives, e.layers->definitions(site.workload, p),
                         e.layers->times(site.workload, p, s.cluster, profile_, site.collectives)};
  auto f =
      forecast({site.workload, p, s.cluster}, profile_,
               {.memory = false, .only_if_fits = true, .give_up_after = within, .known = &known});
  if (e.stage != Stage::cut) ++to.counts.timed;
  if (!f) return;  // of a legal plan: its step is longer than any that can be told
  Entry one = e;
  one.time = f->step_time.expected;
  if (within && one.time > *within) return put(std::move(one), Stage::cut, to);
  one.timed = std::make_shared<Forecast>(*std::move(f));
  put(std::move(one), e.fitted ? Stage::complete : Stage::half, to);
  to.known = to.entries.back().value;
}

FoundPlan SearchSteps::found(const Entry& e) const {
  FoundPlan one{e.site, e.point, *sites_[e.site]->space.plan(e.point), *e.fitted, e.value};
  const Forecast& t = *e.timed;
  Forecast& f = one.forecast;
  f.step_time = t.step_time;
  f.tokens_per_s = t.tokens_per_s;
  f.mfu = t.mfu;
  f.breakdown = t.breakdown;
  f.bubble_fraction = t.bubble_fraction;
  f.slowest = t.slowest;
  f.trust = t.trust;
  f.tasks = t.tasks;
  f.notes.insert(f.notes.end(), t.notes.begin(), t.notes.end());
  return one;
}

}  // namespace shardwise
