#include "planner/report/fit_json.hpp"

#include <nlohmann/json.hpp>

#include "planner/answers/plan_starts.hpp"
#include "planner/report/explanation_report.hpp"
#include "planner/report/fit_text.hpp"
#include "planner/report/length_report.hpp"
#include "planner/report/output.hpp"
#include "planner/report/reach_report.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/why_not_report.hpp"

namespace shardwise {
namespace {

Json advice_json(const Advice& a) {
  Json j = {{"change", a.change},
            {"verdict", verdict_name(a.verdict)},
            {"gpu", a.gpu},
            {"plan", a.plan},
            {"framework", a.question.workload.framework.id},
            {"launch_targets", own_targets(a.question)},
            {"device_gib", json_gib(a.device)},
            {"needed_gib", json_gib(a.needed)},
            {"memory_effect_gib", json_gib(a.memory_effect)},
            {"step_time_s", step_time_json(a.step_time)},
            {"host_ram_gib", json_gib(a.host_ram)}};
  if (a.request) j["request"] = asked_json(*a.request);
  if (a.time_ratio) j["time_ratio"] = json_number(*a.time_ratio);
  return j;
}

Json list_json(const std::vector<Advice>& advice) {
  Json list = Json::array();
  for (const Advice& a : advice) list.push_back(advice_json(a));
  return list;
}

// What --samples or --tokens asks for; the text states the hours of 1,000 sequences where neither
// does.
std::optional<std::int64_t> tokens_asked(const ResolvedRequest& r) {
  if (r.asked.tokens) return r.asked.tokens;
  if (r.asked.samples) return *r.asked.samples * r.tokens_per_sample();
  return std::nullopt;
}

// What the step waits for, beside its work, and what lies on cards of other kinds than the fullest.
void add_waits_and_other_cards(Json& j, const Forecast& f) {
  Json exposed = Json::object(), others = Json::array();
  for (const auto& [kind, t] : f.breakdown.exposed) exposed[kind] = json_number(t.value);
  if (!exposed.empty()) j["exposed_s"] = exposed;
  for (const StageForecast* s : fullest_of_others(f))
    others.push_back({{"gpu", s->gpu},
                      {"peak_memory_gib", memory_json(s->peak)},
                      {"capacity_gib", json_gib(s->capacity)}});
  if (!others.empty()) j["other_gpus"] = others;
}

// Those that start the plan, where it fits.
std::vector<std::string_view> targets_of(const ResolvedRequest& r, const FitAnswer& a,
                                         std::vector<PlayedStart>& played) {
  if (a.chosen.verdict == Verdict::does_not_fit) return {};
  return plan_starts(r, a.chosen.question, &played, true).targets;
}

Json answer_json(const ResolvedRequest& r, const FitAnswer& a, std::vector<PlayedStart>& played) {
  const Forecast& f = a.chosen.forecast;
  const StageForecast& s = f.worst();
  Json j = {{"method", name(a.method)},
            {"gpu", a.gpu},
            {"verdict", verdict_name(a.chosen.verdict)},
            {"plan", whole_text(a.chosen.question.plan)},
            {"framework", a.chosen.question.workload.framework.id},
            {"launch_targets", targets_of(r, a, played)},
            {"settings", settings_json(a.chosen.question)},
            {"peak_memory_gib", memory_json(s.peak)},
            {"needed_memory_gib", json_gib(s.needed)},
            {"peak_memory_high_gib", json_gib(f.peak_device.high)},
            {"capacity_gib", json_gib(s.capacity)},
            {"margin_gib", json_gib(s.capacity - s.peak.device)},
            {"breakdown_gib", breakdown_json(s.breakdown)},
            {"model_states_gib", json_gib(a.model_states)},
            {"host_fits", f.host_fits},
            {"considered", a.chosen.considered},
            {"trust", trust_name(f.trust)},
            {"warnings", a.warnings},
            {"notes", a.chosen.notes},
            {"advice", list_json(a.advice)},
            {"faster", list_json(a.faster)}};
  if (f.tokens_per_s > 0) {  // else its step is too long to be forecast
    j["step_time_s"] = step_time_json(f.step_time);
    j["tokens_per_s"] = json_number(f.tokens_per_s);
    if (const auto tokens = tokens_asked(r)) {
      j["run_tokens"] = *tokens;
      j["run_s"] = json_number(static_cast<double>(*tokens) / f.tokens_per_s);
    }
  }
  add_waits_and_other_cards(j, f);
  if (!a.started.empty()) j["notes"].push_back(a.started);
  add_host_ram(j, f.host);
  if (r.asked.explain)
    j["explain"] = explanation_json(explain(a.chosen.question, f, r.facts->profile));
  if (a.lengths) j["lengths"] = length_json(*a.lengths);
  if (a.reach) j["reach"] = reach_json(*a.reach);
  if (!r.asked.why_not.empty())
    j["why_not"] = why_not_json(why_not_asked(r, {a.chosen.question, f, a.chosen.verdict}));
  return j;
}

}  // namespace

Json fit_json(const ResolvedRequest& request, const FitAnswers& answers) {
  Json list = Json::array();
  std::vector<PlayedStart> played;
  for (const FitAnswer& a : answers.answers) list.push_back(answer_json(request, a, played));
  Json notes = request.notes;
  for (const UnplannedMethod& u : answers.unplanned)
    for (const Problem& p : u.problems) notes.push_back(p.what);
  std::vector<const Question*> answered;
  for (const FitAnswer& a : answers.answers) answered.push_back(&a.chosen.question);
  Json j = {{"schema_version", schema_version},
            {"command", "fit"},
            {"request", request_json(request, answered)},
            {"model", request.model.id},
            {"answers", list},
            {"notes", notes}};
  add_plan_files(j, request);
  return j;
}

}  // namespace shardwise
