#include "planner/report/why_not_report.hpp"

#include <nlohmann/json.hpp>

#include "planner/sentence.hpp"

namespace shardwise {

std::string why_not_text(const std::vector<WhyNot>& list) {
  std::string text;
  for (const WhyNot& w : list) {
    text += sentence("  why not ", w.plan, "?\n");
    for (const std::string& reason : w.reasons) text += sentence("    ", reason, "\n");
  }
  return text;
}

Json why_not_json(const std::vector<WhyNot>& list) {
  Json rows = Json::array();
  for (const WhyNot& w : list) {
    Json j = {{"plan", w.plan}, {"reasons", w.reasons}};
    if (w.verdict) {
      j["verdict"] = verdict_name(*w.verdict);
      j["time_ratio"] = json_number(*w.time_ratio);
      j["memory_difference_gib"] = json_gib(w.memory_difference);
      j["memory_parts_gib"] = Json::object();
      for (const auto& [part, bytes] : w.memory_parts)
        j["memory_parts_gib"][part] = json_gib(bytes);
      j["time_parts_s"] = Json::object();
      for (const auto& [part, t] : w.time_parts) j["time_parts_s"][part] = json_number(t.value);
    }
    rows.push_back(j);
  }
  return rows;
}

std::vector<WhyNot> why_not_asked(const ResolvedRequest& r, const ReferencePlan& reference) {
  std::vector<WhyNot> list;
  for (const std::string& text : r.asked.why_not) list.push_back(why_not(r, reference, text));
  return list;
}

}  // namespace shardwise
