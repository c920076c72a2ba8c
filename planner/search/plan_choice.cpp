#include "planner/search/plan_choice.hpp"

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>
#include <utility>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/plan_layouts.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/nearest_miss.hpp"
#include "planner/search/no_microbatch.hpp"
#include "planner/sentence.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

constexpr int most_microbatch = 16;            // beyond, kernels are full and only memory grows
constexpr int least_share_of_sequence = 2048;  // tokens; of shorter ones layers' inputs take little

struct Tried {
  Question question;
  Forecast memory;
  Verdict verdict = Verdict::does_not_fit;
};

// Does not fit: nobody has looked by how much.
struct Missed {
  ParallelPlan plan;
  std::shared_ptr<const MemoryPlays> plays;  // where they went on to the end for the verdict
};

// Which plans are looked at, where launch files are written for the framework that was asked for:
// all, those that such a file can say ("tellable"), or the others.
enum class Kept { all, tellable, untellable };

// Everything that one choice looks at.
struct PlanSearch {
  const ResolvedRequest& request;
  const Cluster& cluster;
  Method method;
  const LaunchTarget* target = nullptr;  // of the framework asked for; nullptr: all plans are kept
  Kept kept = Kept::all;
  std::vector<std::string> notes;
  std::vector<Tried> fitting;  // to be timed
  std::vector<Missed> missed;
  std::vector<ParallelPlan> hopeless;  // model states alone exceed the GPU
  Problems refused;                    // of plans that are not legal, the first plan's
  int considered = 0;
  std::string untold;  // why the target cannot say the first plan that was left out for it

  // To look at part of it, beside others.
  PlanSearch part() const {
    return {request, cluster, method, target, kept, {}, {}, {}, {}, {}, 0, {}};
  }

  bool keeps(const ParallelPlan& plan) {
    if (target == nullptr || kept == Kept::all) return true;
    const auto refusal = first_plan_refusal(*target, question(plan));
    if (refusal && untold.empty()) untold = *refusal;
    return refusal.has_value() == (kept == Kept::untellable);
  }

  Question question(const ParallelPlan& plan) const {
    return {choose_workload(request, method, cluster, plan.zero_stage).workload, plan, cluster};
  }
};

Bytes stage_room(const Cluster& cluster, bool stages_alike) {
  std::vector<Bytes> cards;
  for (const NodeGroup& g : cluster.groups) cards.push_back(g.gpu.usable_memory());
  const auto [least, most] = std::minmax_element(cards.begin(), cards.end());
  return stages_alike ? *least : *most;
}

const ForecastOptions only_verdict{.only_if_fits = true};

// Forecasts memory, on a card without end; nothing where the plan is refused.
std::optional<Tried> try_plan(PlanSearch& s, const ParallelPlan& plan, ForecastOptions wanted) {
  Tried t{s.question(plan), {}, {}};
  wanted.time = wanted.least_card = false;
  auto memory = forecast(t.question, s.request.facts->profile, wanted);
  if (!memory) {
    if (s.refused.empty()) s.refused = memory.error();
    return std::nullopt;
  }
  t.memory = *std::move(memory);
  t.verdict = judged(t.memory, s.request.host_ram_stated);
  return t;
}

std::vector<int> microbatches(const PlanSearch& s, const ParallelPlan& layout) {
  const int share = s.request.batch / layout.data;
  if (const auto& asked = s.request.asked.microbatch) {
    if (share % *asked != 0) return {};
    return {*asked};
  }
  std::vector<int> sizes;
  if (s.question(layout).workload.framework.gradient_life == GradientLife::in_backward)
    return {share};  // its gradients cannot wait for another microbatch's
  for (int m = 1; m <= std::min(share, most_microbatch); m *= 2)
    if (share % m == 0) sizes.push_back(m);
  return sizes;
}

// The policies worth a try: the framework's own, everything kept, everything redone.
std::vector<std::string> policies_to_try(const PlanSearch& s, const Workload& w) {
  if (s.request.asked.recompute) return {*s.request.asked.recompute};
  std::vector<std::string> names{"none"};
  for (const std::string& name : {usual_recompute(w), std::string("full")})
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

// Where gradients that a plan shards wait whole for the last microbatch, one large microbatch may
// fit where many small ones do not.
void try_at_once(PlanSearch& s, ParallelPlan plan) {
  const Workload w = s.question(plan).workload;
  const int share = s.request.batch / plan.data;
  if (s.request.asked.microbatch || plan.pipeline > 1 || plan.microbatches == 1) return;
  if (share > most_microbatch || !w.trains_base() || reduces_every_microbatch(w.framework, plan))
    return;
  if (!StageHabits(w.framework, plan).shards_gradients) return;
  plan.microbatch = share;
  plan.microbatches = 1;
  ++s.considered;
  std::optional<Tried> t = try_plan(s, plan, only_verdict);
  if (!t) return;
  if (t->verdict == Verdict::does_not_fit)
    s.missed.push_back({plan, t->memory.plays});
  else
    s.fitting.push_back(*std::move(t));
}

// Raises the microbatch while it fits. Kept are the smallest, whose tensors may stay in a cache,
// and the largest of each verdict: a tight one may save half the time of those with room to spare.
void climb(PlanSearch& s, ParallelPlan plan) {
  std::optional<Tried> best;
  for (const std::vector<int> sizes = microbatches(s, plan); const int size : sizes) {
    plan.microbatch = size;
    plan.microbatches = s.request.batch / plan.data / size;
    ++s.considered;
    std::optional<Tried> t = try_plan(s, plan, only_verdict);
    if (!t) break;
    if (t->verdict == Verdict::does_not_fit) {
      s.missed.push_back({plan, t->memory.plays});
      if (!best) try_at_once(s, plan);
      break;
    }
    if (best && (best->question.plan.microbatch == sizes.front() || plan.pipeline > 1 ||
                 best->verdict != t->verdict))
      s.fitting.push_back(std::move(*best));  // of a pipeline every one: smaller, less bubble
    best = std::move(t);
  }
  if (best) s.fitting.push_back(std::move(*best));
}

void join(PlanSearch& s, PlanSearch&& one) {
  std::move(one.fitting.begin(), one.fitting.end(), std::back_inserter(s.fitting));
  s.hopeless.insert(s.hopeless.end(), one.hopeless.begin(), one.hopeless.end());
  s.missed.insert(s.missed.end(), one.missed.begin(), one.missed.end());
  if (s.refused.empty()) s.refused = std::move(one.refused);
  if (s.untold.empty()) s.untold = std::move(one.untold);
  s.considered += one.considered;
}

// Each part is tried on its own and joined in order, so threads change nothing in the answer. The
// caller has the last one, and what it has worked with before is near it.
template <class Try>
void in_parts(PlanSearch& s, std::size_t n, Try try_part) {
  const auto policy = one_of_a_crew ? std::launch::deferred : std::launch::async;
  const auto tried = [&s, &try_part](std::size_t i) {
    PlanSearch one = s.part();
    try_part(one, i);
    return one;
  };
  std::vector<std::future<PlanSearch>> parts;
  for (std::size_t i = 0; i + 1 < n; ++i) parts.push_back(std::async(policy, tried, i));
  std::optional<PlanSearch> last;
  if (n > 0) last.emplace(tried(n - 1));
  for (auto& part : parts) join(s, part.get());
  if (last) join(s, *std::move(last));
}

void try_layout(PlanSearch& s, ParallelPlan layout) {
  const Workload w = s.question(layout).workload;
  layout.recompute = usual_recompute(w);
  if (const Problems problems = plan_problems(w, layout, s.cluster); !problems.empty()) {
    if (s.refused.empty()) s.refused = problems;
    return;
  }
  if (states_on_gpu(w, layout) > stage_room(s.cluster, layout.layers_per_stage.empty())) {
    layout.recompute = s.request.asked.recompute.value_or("full");
    if (!s.keeps(layout)) return;
    ++s.considered;
    s.hopeless.push_back(layout);
    return;
  }
  const std::vector<std::string> policies = policies_to_try(s, w);
  in_parts(s, policies.size(), [&](PlanSearch& one, std::size_t i) {
    ParallelPlan plan = layout;
    plan.recompute = policies[i];
    if (!s.request.asked.offload) offload_as_usual(w, plan);
    if (one.keeps(plan)) climb(one, plan);
  });
}

// The offloads to try: asked for; else none, and what the host could take over where its RAM is
// stated.
std::vector<Offload> offloads_to_try(const PlanSearch& s, bool as_last_resort) {
  if (s.request.asked.offload) {
    if (as_last_resort) return {};
    return {*s.request.asked.offload};
  }
  if (!as_last_resort) return {Offload{}};
  if (!s.request.host_ram_stated) return {};
  return {{true, false, false}, {false, true, false}, {true, true, false}};
}

void try_side_by_side(PlanSearch& s, const std::vector<ParallelPlan>& layouts) {
  in_parts(s, layouts.size(), [&](PlanSearch& one, std::size_t i) { try_layout(one, layouts[i]); });
}

// One rank has nothing to shard, but a launch target may offload with ZeRO only. Targets are asked
// about a plan with recomputation, which all of them can say; try_layout tries each policy anew.
void say_zero_to_offload(const PlanSearch& s, ParallelPlan& layout) {
  if (s.target == nullptr || layout.data * layout.context > 1 || layout.offload == Offload{})
    return;
  ParallelPlan with_zero = layout;
  with_zero.zero_stage = layout.offload.parameters ? 3 : 2;
  with_zero.recompute = layout.recompute = "full";
  if (first_plan_refusal(*s.target, s.question(layout)) &&
      !first_plan_refusal(*s.target, s.question(with_zero)))
    layout = with_zero;
}

void try_layouts(PlanSearch& s, bool as_last_resort, int context = 1) {
  std::vector<ParallelPlan> together, in_turns;
  const Workload w = s.question(ParallelPlan{}).workload;
  for (const Offload& offload : offloads_to_try(s, as_last_resort))
    for (ParallelPlan layout : plan_layouts(w, s.cluster, s.request.batch, context)) {
      layout.offload = offload;
      if (offload.parameters && layout.zero_stage < 3 && s.cluster.gpus() > 1) continue;
      say_zero_to_offload(s, layout);
      (layout.layer_split ? in_turns : together).push_back(layout);
    }
  try_side_by_side(s, together);
  // Cards that take turns leave all but one idle: only where nothing else fits with room to spare.
  if (std::none_of(s.fitting.begin(), s.fitting.end(),
                   [](const Tried& t) { return t.verdict == Verdict::fits; }))
    try_side_by_side(s, in_turns);
}

// Sequences that no GPU has room for are shared by two, by four, ...
void try_contexts(PlanSearch& s) {
  if (!s.question(ParallelPlan{}).workload.framework.supports_context) return;
  for (int context = 2; context <= s.cluster.gpus() && s.fitting.empty(); context *= 2)
    if (s.request.sequence / context >= least_share_of_sequence) try_layouts(s, false, context);
}

// Tensor parallelism over other links than NVLink, with the offload that was asked for.
void try_slow_tensors(PlanSearch& s) {
  const Workload w = s.question(ParallelPlan{}).workload;
  std::vector<ParallelPlan> layouts;
  for (ParallelPlan layout : slow_tensor_layouts(w, s.cluster, s.request.batch)) {
    layout.offload = s.request.asked.offload.value_or(Offload{});
    if (layout.offload.parameters && layout.zero_stage < 3) continue;
    layouts.push_back(layout);
  }
  try_side_by_side(s, layouts);
}

// What costs more is looked at only where nothing that costs less fits.
void try_in_turn(PlanSearch& s) {
  try_layouts(s, false);
  if (s.fitting.empty()) try_contexts(s);
  if (s.fitting.empty()) try_slow_tensors(s);
  if (s.fitting.empty()) try_layouts(s, true);
}

// Plans that no launch file says: the framework's user may write their own. What misses is only
// theirs where there is nothing that could be told.
void try_beyond(PlanSearch& s) {
  PlanSearch beyond = s.part();
  beyond.kept = Kept::untellable;
  try_in_turn(beyond);
  s.considered += beyond.considered;
  if (s.refused.empty()) s.refused = std::move(beyond.refused);
  const bool nothing_told = s.missed.empty() && s.hopeless.empty();
  if (beyond.fitting.empty() && !nothing_told) return;
  s.fitting = std::move(beyond.fitting);
  if (nothing_told) {
    s.missed = std::move(beyond.missed);
    s.hopeless = std::move(beyond.hopeless);
  }
  s.kept = Kept::untellable;
}

void note_what_is_not_written(PlanSearch& s) {
  if (s.target == nullptr) return;
  const auto unwritten = s.target->workload_refusals(s.question(ParallelPlan{}).workload);
  if (!unwritten.empty())
    s.notes.push_back(sentence("No launch file is written for it: ", unwritten.front(), "."));
}

Problems try_asked_plans(PlanSearch& s) {
  Problems problems;
  for (const std::string& text : s.request.asked.plans) {
    const Workload w = s.question(ParallelPlan{}).workload;
    const auto plan = complete_plan(s.request, w, s.cluster, text);
    if (!plan) {
      problems.insert(problems.end(), plan.error().begin(), plan.error().end());
      continue;
    }
    ++s.considered;
    std::optional<Tried> t = try_plan(s, *plan, only_verdict);
    if (!t) continue;
    if (t->verdict == Verdict::does_not_fit)
      s.missed.push_back({*plan, t->memory.plays});
    else
      s.fitting.push_back(std::move(*t));
  }
  return problems;
}

// Of plans that were looked at and do not fit, the nearest; the first of equals. Those that redo
// everything lack least, and come first: the others are played no further than to lack more.
std::optional<Tried> nearest(PlanSearch& s) {
  std::vector<std::optional<Tried>> missed(s.missed.size());
  LeastLack least;
  for (const bool redoes_all : {true, false})
    on_all_cores(missed.size(), [&](std::size_t i) {
      const Missed& m = s.missed[i];
      if ((m.plan.recompute == "full") != redoes_all) return;
      PlanSearch one = s.part();
      missed[i] = try_plan(one, m.plan, {.give_up_lacking = least.known(), .plays = m.plays});
      if (missed[i]) least.learn(missed[i]->memory);
    });
  std::optional<Tried> best;
  for (std::optional<Tried>& t : missed)
    if (t && (!best || nearer(t->memory, best->memory))) best = std::move(t);
  return best;
}

// Of layouts that cannot fit, the one whose states miss by least, with everything recomputed.
std::optional<Tried> settle_for_hopeless(PlanSearch& s) {
  std::optional<std::pair<Bytes, ParallelPlan>> least;
  for (const ParallelPlan& layout : s.hopeless) {
    const Bytes states = states_on_gpu(s.question(layout).workload, layout);
    if (!least || states < least->first) least = {states, layout};
  }
  if (!least) return std::nullopt;
  ParallelPlan plan = least->second;
  const std::vector<int> sizes = microbatches(s, plan);
  if (sizes.empty()) return std::nullopt;
  plan.recompute = s.request.asked.recompute.value_or("full");
  if (!s.request.asked.offload) offload_as_usual(s.question(plan).workload, plan);
  plan.microbatch = sizes.front();
  plan.microbatches = s.request.batch / plan.data / plan.microbatch;
  ++s.considered;
  return try_plan(s, plan, {});
}

// A problem where its step is too long to be forecast, unless memory alone says no.
Result<ChosenPlan> timed(const PlanSearch& s, const Tried& t) {
  ChosenPlan chosen{t.question, t.memory, t.verdict, s.notes, s.considered};
  ForecastOptions options{.unfold = s.request.asked.unfold, .plays = t.memory.plays};
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

// A tight plan is told of where the safe one that is chosen takes this many times as long: a
// preference.
constexpr double worth_a_note = 1.2;

// What was not chosen for its room, or for its time.
void note_other(ChosenPlan& best, const ChosenPlan& other, std::string_view what) {
  const Forecast& f = other.forecast;
  best.notes.push_back(sentence(what, to_string(other.question.plan), ", ",
                                fixed(gib(f.worst().peak.device), 1), " GiB per GPU, ",
                                fixed(f.step_time.expected / best.forecast.step_time.expected, 1),
                                " times the time."));
}

// The fastest of those that fit with room to spare, unless a tight one takes less than half its
// time; the first of equally fast ones. A problem where the steps of all are too long.
Result<ChosenPlan> fastest(const PlanSearch& s, Room room) {
  std::vector<std::optional<Result<ChosenPlan>>> all(s.fitting.size());
  on_all_cores(all.size(), [&](std::size_t i) { all[i] = timed(s, s.fitting[i]); });
  std::vector<std::optional<ChosenPlan>> chosen;
  for (auto& one : all)
    if (*one) chosen.emplace_back(*std::move(*one));
  if (chosen.empty()) return all.front()->error();
  const auto weighed = [](const ChosenPlan& c) {
    return (c.verdict == Verdict::tight ? tight_has_to_save : 1) * c.forecast.step_time.expected;
  };
  const auto first_of = [&](auto counts) {
    const std::optional<ChosenPlan>* best = nullptr;
    for (const auto& c : chosen)
      if (counts(*c) && (best == nullptr || weighed(*c) < weighed(**best))) best = &c;
    return best;
  };
  ChosenPlan best = **first_of([](const ChosenPlan&) { return true; });
  if (best.verdict != Verdict::tight) {
    const auto* tight = first_of([](const ChosenPlan& c) { return c.verdict == Verdict::tight; });
    const bool faster = tight != nullptr && worth_a_note * (*tight)->forecast.step_time.expected <
                                                best.forecast.step_time.expected;
    if (faster && room != Room::demanded) note_other(best, **tight, "Faster, but tightly: ");
    return best;
  }
  const auto* safe = first_of([](const ChosenPlan& c) { return c.verdict == Verdict::fits; });
  if (safe == nullptr) return best;
  if (room == Room::demanded) return **safe;
  note_other(best, **safe, "With room to spare: ");
  return best;
}

void note_what_no_launch_file_says(ChosenPlan& best, const LaunchTarget& target) {
  const auto reason = first_plan_refusal(target, best.question);
  if (reason)
    best.notes.push_back(
        sentence("No plan that ", target.name, " can be told fits; this is more: ", *reason, "."));
}

// Layers are split over cards where whole replicas would be faster, but for the batch.
void note_odd_batch(const PlanSearch& s, ChosenPlan& best) {
  const int gpus = s.cluster.gpus(), batch = s.request.batch, below = batch / gpus * gpus;
  if (!best.question.plan.layer_split || batch == below) return;
  best.notes.push_back(sentence(
      counted(batch, "sequence"), " per step ", batch == 1 ? "does" : "do", " not divide over ",
      gpus, " GPUs, which therefore hold a part of the layers each and take turns; ",
      below > 0 ? sentence(below, " or ") : std::string(), below + gpus,
      " would divide (--batch)."));
}

Problems no_plan(const PlanSearch& s) {
  if (!s.refused.empty()) return s.refused;
  const int gpus = s.cluster.gpus(), batch = s.request.batch;
  if (const auto& m = s.request.asked.microbatch) return {no_microbatch(gpus, batch, *m)};
  const int below = batch / gpus * gpus;
  if (s.target != nullptr && batch == below && !s.untold.empty())
    return {{ProblemKind::request, sentence("--target ", s.target->name), s.untold}};
  return {{ProblemKind::request, "--batch",
           sentence(counted(batch, "sequence"), batch == 1 ? " does" : " do", " not divide over ",
                    counted(gpus, "GPU"), "; ",
                    below > 0 ? sentence("the nearest are ", below, " and ") : "the least is ",
                    below + gpus)}};
}

}  // namespace

Result<ChosenPlan> choose_plan(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, Room room, const LaunchTarget* only) {
  if (Problems problems = precision_problems(request, cluster); !problems.empty()) return problems;
  PlanSearch s{request, cluster, method, only, Kept::all, {}, {}, {}, {}, {}, 0, {}};
  s.notes = choose_workload(request, method, cluster, 0).notes;
  if (!request.asked.plans.empty()) {
    Problems problems = try_asked_plans(s);
    if (!problems.empty()) return problems;
  } else {
    if (request.asked.framework && only == nullptr)
      s.target = target_running(s.question(ParallelPlan{}).workload.framework.id, method);
    s.kept = s.target == nullptr ? Kept::all : Kept::tellable;
    note_what_is_not_written(s);
    try_in_turn(s);
    if (s.fitting.empty() && s.target != nullptr && only == nullptr) try_beyond(s);
  }
  if (!s.fitting.empty()) {
    Result<ChosenPlan> found = fastest(s, room);
    if (!found) return found;
    ChosenPlan& best = *found;
    if (s.kept == Kept::untellable) note_what_no_launch_file_says(best, *s.target);
    note_odd_batch(s, best);
    return found;
  }
  std::optional<Tried> missed = nearest(s);
  if (!missed) missed = settle_for_hopeless(s);
  if (!missed) return no_plan(s);
  return timed(s, *missed);
}

}  // namespace shardwise
