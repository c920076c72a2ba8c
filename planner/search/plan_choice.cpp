#include "planner/search/plan_choice.hpp"

#include <algorithm>
#include <utility>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/plan_layouts.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/search/fastest_plan.hpp"
#include "planner/search/nearest_miss.hpp"
#include "planner/search/no_microbatch.hpp"
#include "planner/search/plan_climb.hpp"
#include "planner/sentence.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

constexpr int least_share_of_sequence = 2048;  // tokens; of shorter ones layers' inputs take little

Bytes stage_room(const Cluster& cluster, bool stages_alike) {
  std::vector<Bytes> cards;
  for (const NodeGroup& g : cluster.groups) cards.push_back(g.gpu.usable_memory());
  const auto [least, most] = std::minmax_element(cards.begin(), cards.end());
  return stages_alike ? *least : *most;
}

// The policies worth a try: the framework's own, everything kept, everything redone.
std::vector<std::string> policies_to_try(const PlanTrial& s, const Workload& w) {
  if (s.request.asked.recompute) return {*s.request.asked.recompute};
  std::vector<std::string> names{"none"};
  for (const std::string& name : {usual_recompute(w), std::string("full")})
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

// Of a plan that nobody asked for.
Problems problems_of_choice(Problems problems, const ParallelPlan& layout) {
  for (Problem& p : problems) p.where = "the first plan tried, " + whole_text(layout);
  return problems;
}

// The climbs of a layout; none where it is refused or hopeless.
std::vector<PlanClimb> climbs_of(PlanTrial& s, ParallelPlan layout) {
  const Workload w = s.question(layout).workload;
  layout.recompute = usual_recompute(w);
  if (const Problems problems = plan_problems(w, layout, s.cluster); !problems.empty()) {
    if (s.refused.empty()) s.refused = problems_of_choice(problems, layout);
    return {};
  }
  if (states_on_gpu(w, layout) > stage_room(s.cluster, layout.layers_per_stage.empty())) {
    layout.recompute = s.request.asked.recompute.value_or("full");
    if (!s.keeps(layout)) return {};
    ++s.considered;
    s.hopeless.push_back(layout);
    return {};
  }
  std::vector<PlanClimb> climbs;
  for (const std::string& policy : policies_to_try(s, w)) {
    ParallelPlan plan = layout;
    plan.recompute = policy;
    if (!s.request.asked.offload) offload_as_usual(w, plan);
    if (s.keeps(plan)) climbs.emplace_back(s, plan);
  }
  return climbs;
}

// The offloads to try: asked for; else none, and what the host could take over where its RAM is
// stated.
std::vector<Offload> offloads_to_try(const PlanTrial& s, bool as_last_resort) {
  if (s.request.asked.offload) {
    if (as_last_resort) return {};
    return {*s.request.asked.offload};
  }
  if (!as_last_resort) return {Offload{}};
  if (!s.request.host_ram_stated) return {};
  return {{true, false, false}, {false, true, false}, {true, true, false}};
}

void try_side_by_side(PlanTrial& s, const std::vector<ParallelPlan>& layouts) {
  if (s.looked == Looked::all)
    return in_parts(s, layouts.size(), [&](PlanTrial& one, std::size_t i) {
      climb_all(one, climbs_of(one, layouts[i]));
    });
  std::vector<PlanTrial> parts;
  std::vector<std::vector<PlanClimb>> climbs;
  std::vector<PlanClimb*> all;
  for (const ParallelPlan& layout : layouts)
    climbs.push_back(climbs_of(parts.emplace_back(s.part()), layout));
  for (std::vector<PlanClimb>& of_layout : climbs)
    for (PlanClimb& c : of_layout) all.push_back(&c);
  climb_until_decided(all);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (PlanClimb& c : climbs[i]) parts[i].join(c.take());
    s.join(std::move(parts[i]));
  }
}

// One rank has nothing to shard, but a launch target may offload with ZeRO only. Targets are asked
// about a plan with recomputation, which all of them can say; try_layout tries each policy anew.
void say_zero_to_offload(const PlanTrial& s, ParallelPlan& layout) {
  if (s.target == nullptr || layout.data * layout.context > 1 || layout.offload == Offload{})
    return;
  ParallelPlan with_zero = layout;
  with_zero.zero_stage = layout.offload.parameters ? 3 : 2;
  with_zero.recompute = layout.recompute = "full";
  if (first_plan_refusal(*s.target, s.question(layout)) &&
      !first_plan_refusal(*s.target, s.question(with_zero)))
    layout = with_zero;
}

void try_layouts(PlanTrial& s, bool as_last_resort, int context = 1) {
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
void try_contexts(PlanTrial& s) {
  if (!s.question(ParallelPlan{}).workload.framework.supports.context) return;
  for (int context = 2; context <= s.cluster.gpus() && s.fitting.empty(); context *= 2)
    if (s.request.sequence / context >= least_share_of_sequence) try_layouts(s, false, context);
}

// Tensor parallelism over other links than NVLink, with the offload that was asked for.
void try_slow_tensors(PlanTrial& s) {
  const Workload w = s.question(ParallelPlan{}).workload;
  std::vector<ParallelPlan> layouts;
  for (ParallelPlan layout : slow_tensor_layouts(w, s.cluster, s.request.batch)) {
    layout.offload = s.request.asked.offload.value_or(Offload{});
    if (layout.offload.parameters && layout.zero_stage < 3) continue;
    layouts.push_back(layout);
  }
  try_side_by_side(s, layouts);
}

// Whether a plan that keeps all cards at work fits with room to spare.
bool has_room(const PlanTrial& s) {
  return std::any_of(s.fitting.begin(), s.fitting.end(), [](const Tried& t) {
    return t.verdict == Verdict::fits && !t.question.plan.layer_split;
  });
}

// What costs more is looked at only where nothing that costs less fits: with room to spare, before
// tensor parallelism over slow links, as that is the next that leaves room.
void try_in_turn(PlanTrial& s) {
  try_layouts(s, false);
  if (s.fitting.empty()) try_contexts(s);
  if (!has_room(s)) try_slow_tensors(s);
  if (s.fitting.empty()) try_layouts(s, true);
}

// Plans that no launch file says: the framework's user may write their own. What misses is only
// theirs where there is nothing that could be told.
void try_beyond(PlanTrial& s) {
  PlanTrial beyond = s.part();
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

void note_what_is_not_written(PlanTrial& s) {
  if (s.target == nullptr) return;
  const auto unwritten = s.target->workload_refusals(s.question(ParallelPlan{}).workload);
  if (!unwritten.empty())
    s.notes.push_back(sentence("No launch file is written for it: ", unwritten.front(), "."));
}

Problems try_asked_plans(PlanTrial& s) {
  Problems problems;
  for (const std::string& text : s.request.asked.plans) {
    const Workload w = s.question(ParallelPlan{}).workload;
    const auto plan = complete_plan(s.request, w, s.cluster, text);
    if (!plan) {
      add_problems(problems, plan.error());
      continue;
    }
    try_for_verdict(s, *plan);
  }
  return problems;
}

// Of plans that were looked at and do not fit, the nearest; the first of equals. Those that redo
// everything lack least, and come first: the others are played no further than to lack more.
std::optional<Tried> nearest(PlanTrial& s) {
  std::vector<std::optional<Tried>> missed(s.missed.size());
  LeastLack least;
  for (const bool redoes_all : {true, false})
    on_all_cores(missed.size(), [&](std::size_t i) {
      const Missed& m = s.missed[i];
      if ((m.plan.recompute == "full") != redoes_all) return;
      PlanTrial one = s.part();
      missed[i] = try_plan(
          one, m.plan, {.give_up_lacking = least.known(), .plays = m.plays, .chosen = m.chosen});
      if (missed[i]) least.learn(missed[i]->memory);
    });
  std::optional<Tried> best;
  for (std::optional<Tried>& t : missed)
    if (t && (!best || nearer(t->memory, best->memory))) best = std::move(t);
  return best;
}

// Of layouts that cannot fit, the one whose states miss by least, with everything recomputed.
std::optional<Tried> settle_for_hopeless(PlanTrial& s) {
  std::optional<std::pair<Bytes, ParallelPlan>> least;
  for (const ParallelPlan& layout : s.hopeless) {
    const Bytes states = states_on_gpu(s.question(layout).workload, layout);
    if (!least || states < least->first) least = {states, layout};
  }
  if (!least) return std::nullopt;
  ParallelPlan plan = least->second;
  const std::vector<int> sizes = microbatch_sizes(s, plan);
  if (sizes.empty()) return std::nullopt;
  plan.recompute = s.request.asked.recompute.value_or("full");
  if (!s.request.asked.offload) offload_as_usual(s.question(plan).workload, plan);
  plan.microbatch = sizes.front();
  plan.microbatches = s.request.batch / plan.data / plan.microbatch;
  ++s.considered;
  return try_plan(s, plan, {});
}

void note_what_no_launch_file_says(ChosenPlan& best, const LaunchTarget& target) {
  const auto reason = first_plan_refusal(target, best.question);
  if (reason)
    best.notes.push_back(
        sentence("No plan that ", target.name, " can be told fits; this is more: ", *reason, "."));
}

// Layers are split over cards where whole replicas would be faster, but for the batch.
void note_odd_batch(const PlanTrial& s, ChosenPlan& best) {
  const int gpus = s.cluster.gpus(), batch = s.request.batch, below = batch / gpus * gpus;
  if (!best.question.plan.layer_split || batch == below) return;
  best.notes.push_back(sentence(
      counted(batch, "sequence"), " per step ", batch == 1 ? "does" : "do", " not divide over ",
      gpus, " GPUs, which therefore hold a part of the layers each and take turns; ",
      below > 0 ? sentence(below, " or ") : std::string(), below + gpus,
      " would divide (--batch)."));
}

Problems no_plan(const PlanTrial& s) {
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

// A play goes on to its end only where the tensors fit. Operators that were searched for would be
// others in other blocks.
void keep_fragmented(const PlanTrial& s, ChosenPlan& best) {
  for (const Missed& m : s.missed)
    if (m.plays != nullptr && m.chosen == nullptr && !m.for_its_host)
      best.fragmented.push_back(m.plan);
}

// A plan whose operators are searched for takes as long as a hundred others.
bool searched(const ResolvedRequest& r) {
  return r.asked.recompute && recompute_policy(*r.asked.recompute)->row->searched;
}

}  // namespace

Result<ChosenPlan> choose_plan(const ResolvedRequest& request, Method method,
                               const Cluster& cluster, Room room, const LaunchTarget* only,
                               Looked looked, LentPlays* lent) {
  if (Problems problems = precision_problems(request, cluster); !problems.empty()) return problems;
  ChoiceCosts costs(request, method, cluster);
  if (looked == Looked::all && searched(request)) looked = Looked::decisive;
  PlanTrial s{request, cluster, method, costs, looked, only, Kept::all, lent};
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
    Result<ChosenPlan> found = fastest_plan(s, room);
    if (!found) return found;
    ChosenPlan& best = *found;
    if (s.kept == Kept::untellable) note_what_no_launch_file_says(best, *s.target);
    note_odd_batch(s, best);
    keep_fragmented(s, best);
    if (request.host_ram_stated && looked != Looked::fitting) note_host_bound(s, best);
    return found;
  }
  if (looked == Looked::fitting) return Problem{ProblemKind::request, "the plan", "none fits"};
  std::optional<Tried> missed = nearest(s);
  if (!missed) missed = settle_for_hopeless(s);
  if (!missed) return no_plan(s);
  return whole_forecast(s, *missed);
}

}  // namespace shardwise
