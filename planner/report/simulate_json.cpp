#include "planner/report/simulate_json.hpp"

#include <nlohmann/json.hpp>

#include "planner/forecast/rank_account.hpp"
#include "planner/report/collective_table.hpp"
#include "planner/report/explanation_report.hpp"
#include "planner/report/output.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/why_not_report.hpp"

namespace shardwise {
namespace {

constexpr int memory_samples = 256;  // per stage; more than a chart has pixels to spare for

Json times_json(const std::map<std::string, Seconds>& times) {
  Json j = Json::object();
  for (const auto& [kind, t] : times) j[kind] = json_number(t.value);
  return j;
}

Json rank_json(const RankAccount& a) {
  return {{"stage", a.stage},
          {"busy_s", times_json(a.busy)},
          {"exposed_s", times_json(a.exposed)},
          {"bubble_s", json_number(a.bubble.value)},
          {"idle_s", json_number(a.idle.value)},
          {"critical_path_s", times_json(a.critical)}};
}

Json path_json(const PathPart& part) {
  return {{"stage", part.stage},
          {"kind", name(part.work)},
          {"first_microbatch", part.first_microbatch},
          {"last_microbatch", part.last_microbatch},
          {"start_s", json_number((part.start - SimTime{}).value)},
          {"duration_s", json_number((part.end - part.start).value)},
          {"tasks", part.tasks}};
}

// Columns rather than a list of objects: a chart reads them so, and they are a third as long.
Json memory_over_time(const StepRecord& record) {
  Json stages = Json::array();
  for (std::size_t stage = 0; stage < record.memory.size(); ++stage) {
    Json at = Json::array(), allocated = Json::array(), reserved = Json::array();
    for (const MemorySample& s :
         thinned(record.memory[stage], record.step.timeline.makespan, memory_samples)) {
      at.push_back(json_number((s.at - SimTime{}).value));
      allocated.push_back(json_gib(s.allocated));
      reserved.push_back(json_gib(s.reserved));
    }
    stages.push_back(
        {{"stage", stage}, {"at_s", at}, {"allocated_gib", allocated}, {"reserved_gib", reserved}});
  }
  return stages;
}

// Empty where the plan names a policy for all blocks.
Json recompute_json(const Forecast& f) {
  Json list = Json::array();
  for (const StageRecompute& r : f.recompute)
    list.push_back({{"stage", r.stage}, {"blocks", r.blocks}, {"operators", r.operators}});
  return list;
}

Json links_json(const StepRecord& record) {
  Json links = Json::array();
  for (const LinkOccupancy& link : record.links) {
    Seconds busy;
    for (const LinkSegment& s : link.segments) busy += s.end - s.start;
    links.push_back(
        {{"stage", link.stage}, {"link", link.link}, {"busy_s", json_number(busy.value)}});
  }
  return links;
}

// A plan that nobody asked for is the framework's default: filled in like other defaults.
Json simulation_echo(ResolvedRequest r, const Question& q) {
  if (r.asked.plans.empty()) r.asked.plans = {whole_text(q.plan)};
  return request_json(r, {&q});
}

}  // namespace

Json simulate_json(const ResolvedRequest& r, const Simulation& s) {
  const Forecast& f = s.forecast;
  const StepRecord& record = s.record();
  Json stages = Json::array(), ranks = Json::array(), path = Json::array();
  for (const StageForecast& stage : f.stages) stages.push_back(stage_json(stage));
  for (const RankAccount& account : rank_accounts(record.step)) ranks.push_back(rank_json(account));
  for (const PathPart& part : path_parts(record.step)) path.push_back(path_json(part));
  Json slowest;
  if (f.slowest)
    slowest = {{"rank", f.slowest->rank}, {"stage", f.slowest->stage}, {"gpu", f.slowest->gpu}};
  Json j = {{"schema_version", schema_version},
            {"command", "simulate"},
            {"request", simulation_echo(r, s.question)},
            {"model", r.model.id},
            {"method", name(s.question.workload.method)},
            {"framework", s.question.workload.framework.id},
            {"settings", settings_json(s.question)},
            {"plan", whole_text(s.question.plan)},
            {"verdict", verdict_name(s.verdict)},
            {"step_time_s", step_time_json(f.step_time)},
            {"tokens_per_s", json_number(f.tokens_per_s)},
            {"mfu", json_number(f.mfu)},
            {"bubble_fraction", json_number(f.bubble_fraction)},
            {"breakdown_s", step_breakdown_json(f.breakdown)},
            {"critical_path_s", times_json(f.critical_path)},
            {"critical_path", path},
            {"slowest_gpu", slowest},
            {"stages", stages},
            {"worst_stage", f.worst_stage},
            {"recompute", recompute_json(f)},
            {"ranks", ranks},
            {"memory_over_time", memory_over_time(record)},
            {"links", links_json(record)},
            {"collectives", collectives_json(record)},
            {"peak_memory_high_gib", json_gib(f.peak_device.high)},
            {"trust", trust_name(f.trust)},
            {"tasks", f.tasks},
            {"notes", s.notes}};
  add_host_ram(j, f.host);
  if (f.host.available) j["host_ram_available_gib"] = json_gib(*f.host.available);
  if (r.asked.explain) j["explain"] = explanation_json(explain(s.question, f, r.facts->profile));
  if (!r.asked.why_not.empty())
    j["why_not"] = why_not_json(why_not_asked(r, {s.question, f, s.verdict}));
  add_plan_files(j, r);
  return j;
}

}  // namespace shardwise
