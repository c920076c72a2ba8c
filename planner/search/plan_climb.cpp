#include "planner/search/plan_climb.hpp"

#include <algorithm>
#include <limits>
#include <thread>

#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

constexpr int most_microbatch = 16;  // beyond, kernels are full and only memory grows

// Of a plan without a step that can be forecast: refused, or too long, and never chosen.
constexpr Seconds never{std::numeric_limits<double>::max()};

}  // namespace

std::vector<int> microbatch_sizes(const PlanTrial& s, const ParallelPlan& layout) {
  const int share = s.request.batch / layout.data;
  if (const auto& asked = s.request.asked.microbatch) {
    if (share % *asked != 0) return {};
    return {*asked};
  }
  std::vector<int> sizes;
  if (s.question(layout).workload.framework.gradients.life == GradientLife::in_backward)
    return {share};  // its gradients cannot wait for another microbatch's
  for (int m = 1; m <= std::min(share, most_microbatch); m *= 2)
    if (share % m == 0) sizes.push_back(m);
  return sizes;
}

PlanClimb::PlanClimb(const PlanTrial& s, const ParallelPlan& plan)
    : plan_(plan),
      found_(s.part()),
      sizes_(microbatch_sizes(s, plan)),
      at_once_(size_at_once()),
      steps_(sizes_.size()),
      done_(sizes_.empty()) {
  const bool other = at_once_ && std::find(sizes_.begin(), sizes_.end(), *at_once_) == sizes_.end();
  if (other) steps_.emplace_back();
}

ParallelPlan PlanClimb::with_size(std::size_t size) const {
  ParallelPlan plan = plan_;
  plan.microbatch = size < sizes_.size() ? sizes_[size] : *at_once_;
  plan.microbatches = found_.request.batch / plan.data / plan.microbatch;
  return plan;
}

// A plan that is refused has no bound, and is found out when it is tried.
void PlanClimb::bound(std::size_t size) {
  ParallelPlan plan = with_size(size);
  const Workload& w = found_.costs.workload(plan);
  Step& step = steps_[size];
  const bool searched = recompute_policy(plan.recompute)->row->searched;
  const bool legal = !w.optimizer->paged && plan_problems(w, plan, found_.cluster).empty();
  step.alone = legal && !searched;
  if (searched) plan.recompute = "none";
  if (legal) step.least = found_.costs.step_bound(plan);
}

// What runs again has been found with the memory.
void PlanClimb::time_searched(const Tried& t, Step& step) const {
  const ResolvedRequest& r = found_.request;
  if (t.memory.chosen == nullptr || t.question.workload.optimizer->paged) return;
  const auto f = forecast(t.question, r.facts->profile,
                          {.unfold = r.asked.unfold,
                           .memory = false,
                           .chosen = t.memory.chosen,
                           .known = &found_.costs.collectives()});
  step.least = f ? f->step_time.expected : never;
  step.timed = true;
}

void PlanClimb::time(std::size_t size) {
  Step& step = steps_[size];
  if (!step.alone || step.timed) return;
  const Question q = found_.question(with_size(size));
  const ResolvedRequest& r = found_.request;
  const KnownCosts known = found_.costs.known(q.plan);
  const auto f =
      forecast(q, r.facts->profile, {.unfold = r.asked.unfold, .memory = false, .known = &known});
  step.least = f ? f->step_time.expected : never;
  step.timed = true;
}

void PlanClimb::keep(Waiting one) {
  Step& step = steps_[one.size];
  if (found_.looked != Looked::all) {
    time(one.size);
    if (!step.timed) time_searched(one.tried, step);
  }
  if (step.timed && step.least < never) {
    one.tried.step = step.least;
    if (one.tried.verdict == Verdict::fits)
      fits_in_ = std::min(step.least, fits_in_.value_or(never));
  }
  found_.fitting.push_back(std::move(one.tried));
}

void PlanClimb::end() {
  done_ = true;
  if (waiting_) keep(*std::move(waiting_));
  waiting_.reset();
}

// Where gradients that a plan shards wait whole for the last microbatch, one large microbatch may
// fit where many small ones do not.
std::optional<int> PlanClimb::size_at_once() const {
  if (sizes_.empty()) return std::nullopt;
  const ParallelPlan plan = with_size(0);
  const ResolvedRequest& r = found_.request;
  const Workload w = found_.question(plan).workload;
  const int share = r.batch / plan.data;
  if (r.asked.microbatch || plan.pipeline > 1 || plan.microbatches == 1) return std::nullopt;
  if (share > most_microbatch || !w.trains_base() || reduces_every_microbatch(w.framework, plan))
    return std::nullopt;
  if (!StageHabits(w.framework, plan).shards_gradients) return std::nullopt;
  return share;
}

void PlanClimb::try_at_once() {
  if (!at_once_) return;
  ParallelPlan plan = plan_;
  plan.microbatch = *at_once_;
  plan.microbatches = 1;
  try_for_verdict(found_, plan);
}

void PlanClimb::look() {
  const std::size_t size = next_++;
  const ParallelPlan plan = with_size(size);
  ++found_.considered;
  std::optional<Tried> t = try_plan(found_, plan, {.only_if_fits = true});
  if (!t) return end();
  if (t->verdict == Verdict::does_not_fit) {
    found_.missed.push_back(missed_by(plan, *t));
    if (size == 0) try_at_once();
    return end();
  }
  if (waiting_ && waiting_->tried.verdict != t->verdict) keep(*std::move(waiting_));
  waiting_.reset();
  if (size == 0 || plan.pipeline > 1)
    keep({*std::move(t), size});
  else
    waiting_ = {*std::move(t), size};
  if (next_ == sizes_.size()) end();
}

std::size_t PlanClimb::fastest_left() const {
  std::size_t least = waiting_ ? waiting_->size : next_;
  const std::size_t end =
      next_ == 0 ? steps_.size() : sizes_.size();  // at once if the first misses
  for (std::size_t size = least + 1; size < end; ++size)
    if (steps_[size].least < steps_[least].least) least = size;
  return least;
}

void PlanClimb::advance() {
  const std::size_t fastest = fastest_left();
  if (steps_[fastest].alone && !steps_[fastest].timed)
    time(fastest);
  else
    look();
}

void climb_all(PlanTrial& s, std::vector<PlanClimb> climbs) {
  in_parts(s, climbs.size(), [&](PlanTrial& one, std::size_t i) {
    while (!climbs[i].done()) climbs[i].look();
    one.join(climbs[i].take());
  });
}

namespace {

// The next climbs to go on with, so many of them; none where nothing that is left counts.
std::vector<PlanClimb*> most_promising(const std::vector<PlanClimb*>& climbs, std::size_t most) {
  std::optional<Seconds> within;
  for (const PlanClimb* c : climbs)
    if (c->fits_in() && (!within || *c->fits_in() < *within)) within = c->fits_in();
  std::vector<std::pair<Seconds, PlanClimb*>> left;
  for (PlanClimb* c : climbs) {
    if (c->done()) continue;
    const Seconds least = c->least_left();
    if (!within || least <= *within) left.emplace_back(least, c);
  }
  std::stable_sort(left.begin(), left.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PlanClimb*> next;
  for (std::size_t i = 0; i < std::min(left.size(), most); ++i) next.push_back(left[i].second);
  return next;
}

}  // namespace

// Any number of them at a time gives the same answer.
void climb_until_decided(const std::vector<PlanClimb*>& climbs) {
  std::vector<std::pair<PlanClimb*, std::size_t>> all;
  for (PlanClimb* c : climbs)
    for (std::size_t size = 0; size < c->sizes(); ++size) all.emplace_back(c, size);
  if (all.size() > 1)
    on_all_cores(all.size(), [&](std::size_t i) { all[i].first->bound(all[i].second); });
  const bool alone = one_of_a_crew || one_of_many;
  const std::size_t cores = alone ? 1 : cores_here();
  for (auto next = most_promising(climbs, cores); !next.empty();
       next = most_promising(climbs, cores))
    on_all_cores(next.size(), [&](std::size_t i) { next[i]->advance(); });
}

}  // namespace shardwise
