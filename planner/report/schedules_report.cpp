#include "planner/report/schedules_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/report/output.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string schedule_title(const ScheduleRow& row) {
  return row.chunks == 1 ? row.schedule : sentence(row.schedule, " x", row.chunks);
}

// Each stage's peak, or the largest and the smallest of many.
std::string shown_peaks(const Forecast& f) {
  std::string each;
  const StageForecast* most = &f.stages.front();
  const StageForecast* least = most;
  for (const StageForecast& s : f.stages) {
    each += sentence(each.empty() ? "" : " ", shown_gib_number(s.peak.device));
    if (s.peak.device > most->peak.device) most = &s;
    if (s.peak.device < least->peak.device) least = &s;
  }
  if (f.stages.size() <= 8) return each;
  return sentence(shown_gib_number(most->peak.device), " (stage ", most->stage, ") to ",
                  shown_gib_number(least->peak.device), " (stage ", least->stage, ")");
}

Json peaks_json(const Forecast& f) {
  Json peaks = Json::array();
  for (const StageForecast& s : f.stages) peaks.push_back(json_gib(s.peak.device));
  return peaks;
}

Json played_json(const PlayedPlan& p) {
  return {{"plan", whole_text(p.plan)},
          {"microbatch", p.plan.microbatch},
          {"recompute", p.plan.recompute},
          {"step_time_s", step_time_json(p.forecast.step_time)},
          {"tokens_per_s", json_number(p.forecast.tokens_per_s)},
          {"bubble_fraction", json_number(p.forecast.bubble_fraction)},
          {"peak_device_gib", peaks_json(p.forecast)}};
}

}  // namespace

std::string schedules_text(const ResolvedRequest& r, const ScheduleComparison& c) {
  Table asked{{"as asked", "step", "bubble", "device GiB by stage"}, {}};
  Table equal{
      {"at equal memory", "step", "tokens/s", "bubble", "most GiB", "microbatch", "recompute"}, {}};
  std::string refused;
  for (const ScheduleRow& row : c.rows) {
    if (!row.as_asked) {
      refused += sentence("  ", schedule_title(row), ": ", row.refused, "\n");
      continue;
    }
    const Forecast& f = row.as_asked->forecast;
    asked.rows.push_back({schedule_title(row), shown_time(f.step_time.expected),
                          shown_share(f.bubble_fraction), shown_peaks(f)});
    if (!row.equal_memory) {
      equal.rows.push_back({schedule_title(row), "nothing fits"});
      continue;
    }
    const PlayedPlan& best = *row.equal_memory;
    Bytes most;
    for (const StageForecast& s : best.forecast.stages) most = std::max(most, s.peak.device);
    equal.rows.push_back({schedule_title(row), shown_time(best.forecast.step_time.expected),
                          shown_rate(best.forecast.tokens_per_s),
                          shown_share(best.forecast.bubble_fraction), shown_gib_number(most),
                          std::to_string(best.plan.microbatch), best.plan.recompute});
  }
  std::string text =
      sentence(r.model.id, ", ", name(r.methods.front()), ", ", grouped(r.sequence), " tokens x ",
               shown_samples(c.asked.plan.global_batch(), r.asked.preference), " on ",
               r.clusters.front().spoken, "\n", shown_table(asked), "each at its best within ",
               shown_gib(c.budget), " per GPU\n", shown_table(equal));
  if (!refused.empty()) text += sentence("cannot run\n", refused);
  if (const auto note = told_of_whole_weights(c.asked)) text += sentence("  note: ", *note, "\n");
  return text;
}

Json schedules_json(const ResolvedRequest& r, const ScheduleComparison& c) {
  Json rows = Json::array();
  for (const ScheduleRow& row : c.rows) {
    Json j = {{"schedule", row.schedule}, {"chunks", row.chunks}};
    if (row.as_asked)
      j["as_asked"] = played_json(*row.as_asked);
    else
      j["problem"] = row.refused;
    if (row.equal_memory) j["at_equal_memory"] = played_json(*row.equal_memory);
    rows.push_back(j);
  }
  Json notes = r.notes;
  if (const auto note = told_of_whole_weights(c.asked)) notes.push_back(*note);
  return {{"schema_version", schema_version},
          {"command", "compare"},
          {"request", request_json(r, {&c.asked})},
          {"model", r.model.id},
          {"method", name(r.methods.front())},
          {"memory_gib", json_gib(c.budget)},
          {"schedules", rows},
          {"notes", notes}};
}

}  // namespace shardwise
