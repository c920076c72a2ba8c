#include "planner/report/validation_json.hpp"

#include <nlohmann/json.hpp>

#include "planner/report/output.hpp"

namespace shardwise {
namespace {

Json statistics_json(const ErrorStatistics& e) {
  return {{"runs", e.count},
          {"bias", json_number(e.bias)},
          {"median", json_number(e.median)},
          {"p90", json_number(e.p90)},
          {"mean", json_number(e.mean)}};
}

Json over_json(const OverSources& o) {
  return {
      {"sources", o.sources}, {"median", json_number(o.median)}, {"worst", json_number(o.worst)}};
}

Json score_json(const ValidationScore& s) {
  Json rows = Json::array(), skipped = Json::object();
  for (const ScoreRow& row : s.rows)
    rows.push_back({{"name", row.key.name},
                    {"time", statistics_json(row.time)},
                    {"memory", statistics_json(row.memory)}});
  for (const auto& [reason, count] : s.skipped) skipped[reason] = count;
  const OutcomeScore& o = s.outcome;
  return {{"records", s.records},
          {"answered", s.answered},
          {"skipped", skipped},
          {"rows", rows},
          {"time", statistics_json(s.time)},
          {"memory", statistics_json(s.memory)},
          {"time_over_sources", over_json(s.time_over_sources)},
          {"memory_over_sources", over_json(s.memory_over_sources)},
          {"time_coverage", json_number(s.time_coverage)},
          {"memory_coverage", json_number(s.memory_coverage)},
          {"outcome",
           {{"ran_out", o.oom},
            {"false_fits", o.false_fits},
            {"ran", o.ran},
            {"false_refusals", o.false_refusals}}},
          {"ranking",
           {{"groups", s.ranking.groups},
            {"regret_median", json_number(s.ranking.regret_median)},
            {"regret_mean", json_number(s.ranking.regret_mean)}}}};
}

template <class T, class Number>
void add_interval(Json& j, const char* key, const std::optional<Interval<T>>& interval,
                  std::optional<double> measured, Number number) {
  Json& to = j[key] = Json::object();
  if (measured) to["measured"] = json_number(*measured);
  if (!interval) return;
  to["predicted"] = json_number(number(interval->expected));
  to["low"] = json_number(number(interval->low));
  to["high"] = json_number(number(interval->high));
}

Json run_json(const ReplayedRun& r) {
  Json j = {{"id", r.run->id},
            {"source", r.run->source},
            {"gpu", r.run->hardware.gpu.value_or("not stated")},
            {"framework", r.framework},
            {"method", r.run->training.method}};
  if (r.skipped) {
    j["skipped"] = r.skipped->reason;
    return j;
  }
  std::optional<double> step;
  if (const auto measured = measured_step(*r.run)) step = measured->value;
  add_interval(j, "step_time_s", r.step_time, step, [](Seconds t) { return t.value; });
  add_interval(j, "peak_mem_gib", r.memory_gib, measured_memory_gib(*r.run),
               [](double gib) { return gib; });
  Json outcome = Json::object();
  if (!r.run->measured.outcome.empty()) outcome["measured"] = r.run->measured.outcome;
  if (r.outcome) outcome["predicted"] = name(*r.outcome);
  j["outcome"] = outcome;
  return j;
}

}  // namespace

Json validation_json(const std::vector<ReplayedRun>& runs, const ValidationScore& score,
                     std::string_view by) {
  Json list = Json::array();
  for (const ReplayedRun& r : runs) list.push_back(run_json(r));
  return {{"schema_version", schema_version},
          {"command", "validate"},
          {"by", by},
          {"score", score_json(score)},
          {"runs", list}};
}

}  // namespace shardwise
