#include "planner/report/report_details.hpp"

#include "planner/report/simulate_json.hpp"
#include "planner/report/timeline_json.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_bytes = 3'000'000;
constexpr TimelineLimits small{20'000, 20'000};  // of one plan among several

ReportDetail report_detail(const ResolvedRequest& request, const Simulation& simulation,
                           std::size_t of) {
  Json shown = simulate_json(request, simulation);
  shown.erase("why_not");        // which the answer tells
  shown.erase("critical_path");  // task by task; the page draws it by kind
  return {of, std::move(shown), timeline_json(simulation.record(), small)};
}

}  // namespace

std::vector<ReportDetail> report_details(const std::vector<AskedDetail>& asked) {
  std::vector<ReportDetail> details;
  std::size_t bytes = 0;
  for (const AskedDetail& one : asked) {
    const auto simulation = simulate_question(*one.request, one.question);
    if (!simulation) continue;
    ReportDetail detail = report_detail(*one.request, *simulation, one.of);
    bytes += detail.simulation.dump().size() + detail.timeline.dump().size();
    if (bytes > most_bytes) break;
    details.push_back(std::move(detail));
  }
  return details;
}

std::vector<ReportDetail> report_details(const ResolvedRequest& request,
                                         const std::vector<std::optional<Question>>& questions) {
  std::vector<AskedDetail> asked;
  for (std::size_t i = 0; i < questions.size(); ++i)
    if (questions[i]) asked.push_back({&request, *questions[i], i});
  return report_details(asked);
}

}  // namespace shardwise
