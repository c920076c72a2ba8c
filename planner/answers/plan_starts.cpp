#include "planner/answers/plan_starts.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "catalog/find.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"
#include "simulator/memory/played_alike.hpp"

namespace shardwise {
namespace {

std::string framework_of(const LaunchTarget& target, const Question& q) {
  return std::string(target.framework(q.workload.method, q.plan.zero_stage));
}

Workload workload_in(ResolvedRequest theirs, const Question& q, std::string framework) {
  theirs.asked.framework = std::move(framework);
  return choose_workload(theirs, q.workload.method, q.cluster, q.plan).workload;
}

// What a target would choose otherwise than was forecast, as flags of `launch`.
std::vector<std::string> flags_for(const ResolvedRequest& r, const Question& q,
                                   const LaunchTarget& target) {
  const Workload& w = q.workload;
  const Workload own = workload_in(r, q, framework_of(target, q));
  std::vector<std::string> flags;
  if (own.optimizer != w.optimizer) flags.push_back(sentence("--optimizer ", w.optimizer->name));
  if (own.compute != w.compute) flags.push_back(sentence("--precision ", name(w.compute)));
  if (!row(w.method).adapter) return flags;
  const Adapter &a = w.adapter, &b = own.adapter;
  const std::string targets = target_names(a.targets);
  if (a.rank != b.rank) flags.push_back(sentence("--lora-rank ", a.rank));
  if (targets != target_names(b.targets)) flags.push_back(sentence("--lora-targets ", targets));
  if (w.method == Method::qlora && a.base != b.base)
    flags.push_back(sentence("--quantization ", row(a.base).name));
  return flags;
}

}  // namespace

Question question_in(const ResolvedRequest& r, const Question& q, const LaunchTarget& target) {
  const Workload& w = q.workload;
  const std::string framework = framework_of(target, q);
  if (framework == w.framework.id) return q;
  if (r.asked.framework)
    if (const auto row = find_framework(r.facts->catalog, framework);
        row && (**row).family == w.framework.family)
      return q;
  ResolvedRequest theirs = r;
  theirs.asked.optimizer = w.optimizer;
  theirs.asked.precision = w.compute;
  if (row(w.method).adapter) {
    theirs.asked.lora_rank = w.adapter.rank;
    theirs.asked.lora_targets = target_names(w.adapter.targets);
    if (w.method == Method::qlora) theirs.asked.quantization = w.adapter.base;
  }
  return {workload_in(theirs, q, framework), q.plan, q.cluster};
}

namespace {

bool plays_the_same(const PlayedStart& before, const Question& q) {
  const Workload &a = before.workload, &b = q.workload;
  return before.plan == q.plan && a.method == b.method && a.optimizer == b.optimizer &&
         a.framework.id == b.framework.id && played_alike(a, b);
}

// Whether one question's plan fits in the frameworks that targets run: asked of each of them once.
class FitsInTheirs {
 public:
  FitsInTheirs(const ResolvedRequest& r, const Question& q, std::vector<PlayedStart>* played,
               bool fits_here)
      : request_(r), played_(played) {
    if (fits_here) known_.emplace(q.workload.framework.id, true);
  }

  // Asks about all of them side by side, but where plays are handed from one to the next.
  void look_at(const std::vector<const Question*>& all) {
    std::vector<std::pair<const Question*, std::optional<bool>*>> asked;
    for (const Question* theirs : all)
      if (const auto [at, is_new] = known_.try_emplace(theirs->workload.framework.id); is_new)
        asked.emplace_back(theirs, &at->second);
    const auto ask = [&](std::size_t i) { *asked[i].second = forecast_of(*asked[i].first); };
    if (played_ == nullptr) return on_all_cores(asked.size(), ask);
    for (std::size_t i = 0; i < asked.size(); ++i) ask(i);
  }

  // Nothing where the framework refuses the plan. REQUIRES that it was looked at.
  std::optional<bool> fits(const Question& theirs) const {
    return known_.at(theirs.workload.framework.id);
  }

 private:
  std::optional<bool> forecast_of(const Question& theirs) {
    ForecastOptions options{.time = false, .only_if_fits = true, .tight_is_told = false};
    if (played_ != nullptr)
      for (const PlayedStart& before : *played_)
        if (plays_the_same(before, theirs)) options.plays = before.plays;
    const auto f = forecast(theirs, request_.facts->profile, options);
    if (!f) return std::nullopt;
    if (played_ != nullptr && f->plays != nullptr && options.plays == nullptr)
      played_->push_back({theirs.workload, theirs.plan, f->plays});
    return judged(*f, request_.host_ram_stated) != Verdict::does_not_fit;
  }

  const ResolvedRequest& request_;
  std::vector<PlayedStart>* played_;
  std::map<std::string, std::optional<bool>> known_;  // by the framework's id
};

}  // namespace

PlanStarts plan_starts(const ResolvedRequest& r, const Question& q,
                       std::vector<PlayedStart>* played, bool fits_here) {
  PlanStarts starts;
  FitsInTheirs in_theirs(r, q, played, fits_here);
  std::vector<std::pair<const LaunchTarget*, Question>> taken;
  for (const LaunchTarget& target : launch_targets()) {
    if (!launch_refusals(target, q).empty()) continue;
    if (lacking_file(r.facts->catalog, framework_of(target, q))) continue;  // not to be judged
    Question theirs = question_in(r, q, target);
    if (theirs.workload.compute != q.workload.compute) continue;  // left_unlowered: another run
    if (launch_refusals(target, theirs).empty()) taken.emplace_back(&target, std::move(theirs));
  }
  std::vector<const Question*> questions;
  for (const auto& one : taken) questions.push_back(&one.second);
  in_theirs.look_at(questions);
  for (const auto& [taking, theirs] : taken) {
    const LaunchTarget& target = *taking;
    const std::optional<bool> fits = in_theirs.fits(theirs);
    if (!fits) continue;
    if (!*fits) {
      starts.too_large.push_back(target.name);
      continue;
    }
    const bool forecast_there = framework_of(target, q) == q.workload.framework.id;
    starts.targets.insert(forecast_there ? starts.targets.begin() : starts.targets.end(),
                          target.name);
    for (std::string& flag : flags_for(r, q, target))
      if (std::find(starts.flags.begin(), starts.flags.end(), flag) == starts.flags.end())
        starts.flags.push_back(std::move(flag));
  }
  std::sort(starts.flags.begin(), starts.flags.end());
  return starts;
}

std::vector<std::string_view> own_targets(const Question& q) {
  std::vector<std::string_view> targets;
  for (const LaunchTarget& target : launch_targets())
    if (launch_refusals(target, q).empty() && framework_of(target, q) == q.workload.framework.id)
      targets.push_back(target.name);
  return targets;
}

std::string listed_targets(const PlanStarts& starts) {
  std::string text = listed(starts.targets, " or ");
  if (starts.flags.empty()) return text;
  std::vector<std::string> said{"this --plan"};
  said.insert(said.end(), starts.flags.begin(), starts.flags.end());
  return text + sentence(", with ", listed(said));
}

std::string told(const PlanStarts& starts, std::string_view what) {
  if (starts.any())
    return sentence("Started by shardwise launch --target ", listed_targets(starts));
  std::string text = sentence("No target of shardwise launch can start ", what);
  if (!starts.too_large.empty())
    text += sentence(": it does not fit in what ", listed(starts.too_large),
                     starts.too_large.size() > 1 ? " run" : " runs");
  return text;
}

std::optional<LaunchAnswer> best_start(const Request& request, Method method, const Facts& facts) {
  if (!request.plans.empty() || !request.plan_from.empty()) return std::nullopt;
  const auto targets = launch_targets();
  std::vector<std::optional<LaunchAnswer>> answers(targets.size());
  on_all_cores(targets.size(), [&](std::size_t i) {
    Request one = request;
    one.methods = {method};
    one.target = std::string(targets[i].name);
    auto answer = launch_answer(one, facts);
    if (answer && answer->verdict != Verdict::does_not_fit) answers[i] = *std::move(answer);
  });
  const auto weighed = [](const LaunchAnswer& a) {
    return (a.verdict == Verdict::tight ? tight_has_to_save : 1) * a.forecast.step_time.expected;
  };
  std::optional<LaunchAnswer> best;
  for (std::optional<LaunchAnswer>& a : answers)
    if (a && (!best || weighed(*a) < weighed(*best))) best = std::move(a);
  return best;
}

}  // namespace shardwise
