#include "planner/advice/why_not.hpp"

#include <algorithm>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::map<std::string, Seconds> step_parts(const StepBreakdown& b) {
  std::map<std::string, Seconds> parts = b.compute;
  for (const auto& [kind, t] : b.exposed) parts["waiting for " + kind] += t;
  parts["bubble"] += b.bubble;
  parts["host"] += b.host;
  parts["offload"] += b.offload;
  return parts;
}

void compare_memory(const Forecast& other, const Forecast& reference, WhyNot& w) {
  w.memory_difference = other.worst().peak.device - reference.worst().peak.device;
  for (std::size_t c = 0; c < memory_category_count; ++c) {
    const std::int64_t more = other.worst().breakdown[c] - reference.worst().breakdown[c];
    if (more != 0) w.memory_parts[std::string(memory_category_names[c])] = Bytes(more);
  }
}

// Steps of different batches are compared at the reference's.
void compare_time(const Forecast& other, const Forecast& reference, WhyNot& w) {
  w.time_ratio = reference.tokens_per_s / other.tokens_per_s;
  const double scale = *w.time_ratio * (reference.step_time.expected / other.step_time.expected);
  for (const auto& [part, t] : step_parts(other.breakdown)) w.time_parts[part] += scale * t;
  for (const auto& [part, t] : step_parts(reference.breakdown)) w.time_parts[part] += -1.0 * t;
  std::erase_if(w.time_parts, [](const auto& entry) { return entry.second == Seconds(0); });
}

template <class Parts>
auto largest(const Parts& parts) {
  return std::max_element(parts.begin(), parts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

std::string worded(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

void say_memory(const Forecast& other, Verdict verdict, WhyNot& w) {
  const StageForecast& s = other.worst();
  std::string mostly;
  if (const auto part = largest(w.memory_parts);
      part != w.memory_parts.end() && part->second > Bytes(0))
    mostly = sentence("; mostly ", worded(part->first), ", ", shown_gib(part->second), " more");
  if (s.peak.device > s.capacity)
    w.reasons.push_back(sentence(
        "It does not fit: ", shown_gib(s.peak.device), " on a GPU of ", shown_gib(s.capacity), ", ",
        shown_difference(s.peak.device - s.capacity), " too much", mostly, "."));
  else if (verdict == Verdict::does_not_fit)
    w.reasons.push_back(sentence("Its host RAM does not suffice: ",
                                 shown_gib(std::max(other.host.steady, other.host.load_peak)),
                                 " of ", shown_gib(other.host.available.value_or(Bytes(0))), "."));
  else if (w.memory_difference > Bytes(0))
    w.reasons.push_back(sentence("It fits, with ", shown_difference(w.memory_difference),
                                 " more per GPU", mostly, "."));
  else
    w.reasons.push_back(sentence("It fits, with ", shown_difference(Bytes(0) - w.memory_difference),
                                 " less per GPU."));
}

void say_time(WhyNot& w) {
  const double ratio = *w.time_ratio;
  if (ratio < 1) {
    w.reasons.push_back(sentence("It is faster: ", fixed(ratio, 2), " times the time per token."));
    return;
  }
  const auto part = largest(w.time_parts);
  std::string mostly;
  if (part != w.time_parts.end() && part->second > Seconds(0))
    mostly = sentence("; mostly ", worded(part->first), ", ", shown_time(part->second),
                      " more per step");
  w.reasons.push_back(
      sentence("It takes ", fixed(ratio, 2), " times as long per token", mostly, "."));
}

}  // namespace

WhyNot why_not(const ResolvedRequest& r, const ReferencePlan& reference, const std::string& text) {
  WhyNot w;
  w.plan = text;
  const Cluster& cluster = reference.question.cluster;
  const Method method = reference.question.workload.method;
  const auto refuse = [&](const Problems& problems) {
    for (const Problem& p : problems) w.reasons.push_back(sentence("It cannot run: ", p.what, "."));
    return w;
  };
  const ChosenWorkload first = choose_workload(r, method, cluster, 0);
  const auto plan = complete_plan(r, first.workload, cluster, text);
  if (!plan) return refuse(plan.error());
  w.plan = whole_text(*plan);
  const ChosenWorkload chosen = choose_workload(r, method, cluster, *plan);
  const Question question{chosen.workload, *plan, cluster};
  const auto f = forecast(question, r.facts->profile);
  if (!f) return refuse(f.error());
  w.verdict = judged(*f, r.host_ram_stated);
  compare_memory(*f, reference.forecast, w);
  compare_time(*f, reference.forecast, w);
  say_memory(*f, *w.verdict, w);
  say_time(w);
  if (const auto note = told_of_whole_weights(question)) w.reasons.push_back(*note);
  return w;
}

}  // namespace shardwise
