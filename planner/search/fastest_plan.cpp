#include "planner/search/fastest_plan.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

Result<ChosenPlan> whole_forecast(const PlanTrial& s, const Tried& t) {
  ChosenPlan chosen{t.question, t.memory, t.verdict, s.notes, s.considered};
  const Workload& w = t.question.workload;
  if (w.compute != s.costs.workload(ParallelPlan{}).compute)
    chosen.notes.push_back(told_unlowered(w.framework, w.compute));
  ForecastOptions options{.unfold = s.request.asked.unfold,
                          .plays = t.memory.plays,
                          .chosen = t.memory.chosen,
                          .known = &s.costs.collectives()};
  auto whole = forecast(t.question, s.request.facts->profile, options);
  if (!whole && t.verdict == Verdict::does_not_fit) {
    chosen.notes.emplace_back("Its step would be longer than the 106 days that can be forecast.");
    options.time = false;
    whole = forecast(t.question, s.request.facts->profile, options);
  }
  if (!whole) return whole.error();
  chosen.forecast = *std::move(whole);
  const std::vector<std::string>& more = chosen.forecast.notes;
  chosen.notes.insert(chosen.notes.end(), more.begin(), more.end());
  return chosen;
}

namespace {

// One that fits, with its step.
struct Timed {
  const Tried* plan;
  Seconds step;

  double weighed() const {
    return (plan->verdict == Verdict::tight ? tight_has_to_save : 1) * step.value;
  }
};

// Without those whose steps are too long to be forecast. What they take of memory is known as far
// as it matters here.
std::vector<Timed> with_steps(const PlanTrial& s) {
  std::vector<std::optional<Seconds>> steps(s.fitting.size());
  on_all_cores(steps.size(), [&](std::size_t i) {
    const Tried& t = s.fitting[i];
    steps[i] = t.step;
    if (t.step) return;
    const ForecastOptions options{.unfold = s.request.asked.unfold,
                                  .memory = false,
                                  .least_card = false,
                                  .plays = t.memory.plays,
                                  .chosen = t.memory.chosen,
                                  .known = &s.costs.collectives()};
    const auto f = forecast(t.question, s.request.facts->profile, options);
    if (f) steps[i] = f->step_time.expected;
  });
  std::vector<Timed> timed;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i]) timed.push_back({&s.fitting[i], *steps[i]});
  return timed;
}

template <class Counts>
const Timed* first_of(const std::vector<Timed>& all, Counts counts) {
  const Timed* best = nullptr;
  for (const Timed& t : all)
    if (counts(*t.plan) && (best == nullptr || t.weighed() < best->weighed())) best = &t;
  return best;
}

// What was not chosen for its room, or for its time. Either has been timed.
void note_other(const PlanTrial& s, ChosenPlan& best, const Timed& other, std::string_view what) {
  const auto whole = whole_forecast(s, *other.plan);
  if (!whole) return;
  const Forecast& f = whole->forecast;
  best.notes.push_back(sentence(what, to_string(whole->question.plan), ", ",
                                fixed(gib(f.worst().peak.device), 1), " GiB per GPU, ",
                                fixed(f.step_time.expected / best.forecast.step_time.expected, 1),
                                " times the time."));
}

}  // namespace

void note_host_bound(PlanTrial& s, ChosenPlan& best) {
  std::vector<const Missed*> missed;
  for (const Missed& m : s.missed)
    if (m.for_its_host) missed.push_back(&m);
  std::vector<Seconds> steps(missed.size(), best.forecast.step_time.expected);
  on_all_cores(steps.size(), [&](std::size_t i) {
    const auto f = forecast(s.question(missed[i]->plan), s.request.facts->profile,
                            {.unfold = s.request.asked.unfold,
                             .memory = false,
                             .chosen = missed[i]->chosen,
                             .known = &s.costs.collectives()});
    if (f) steps[i] = f->step_time.expected;
  });
  const auto least = std::min_element(steps.begin(), steps.end());
  if (least == steps.end() || worth_a_note * *least > best.forecast.step_time.expected) return;
  const Missed& m = *missed[static_cast<std::size_t>(least - steps.begin())];
  const auto t = try_plan(s, m.plan, {.plays = m.plays, .chosen = m.chosen});
  if (!t || !t->memory.host.available) return;
  const HostMemory& host = t->memory.host;
  best.notes.push_back(sentence("Faster with more host RAM: ", to_string(m.plan), ", ",
                                shown_gib(std::max(host.steady, host.load_peak)),
                                " of it per node instead of ", shown_gib(*host.available), ", ",
                                fixed(*least / best.forecast.step_time.expected, 1),
                                " times the time."));
}

Result<ChosenPlan> fastest_plan(const PlanTrial& s, Room room) {
  if (s.fitting.size() == 1) return whole_forecast(s, s.fitting.front());
  const std::vector<Timed> all = with_steps(s);
  if (all.empty()) return whole_forecast(s, s.fitting.front());
  const auto is = [](Verdict v) { return [v](const Tried& t) { return t.verdict == v; }; };
  const Timed* best = first_of(all, [](const Tried&) { return true; });
  const Timed *tight = first_of(all, is(Verdict::tight)), *safe = first_of(all, is(Verdict::fits));
  if (best == tight && safe != nullptr && room == Room::demanded)
    return whole_forecast(s, *safe->plan);
  auto chosen = whole_forecast(s, *best->plan);
  if (!chosen) return chosen;
  if (best == tight) {
    if (safe != nullptr) note_other(s, *chosen, *safe, "With room to spare: ");
  } else if (tight != nullptr && worth_a_note * tight->step < best->step) {
    if (room != Room::demanded) note_other(s, *chosen, *tight, "Faster, but tightly: ");
  }
  return chosen;
}

}  // namespace shardwise
