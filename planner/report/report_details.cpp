#include "planner/report/report_details.hpp"

#include "planner/report/simulate_json.hpp"
#include "planner/report/timeline_json.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_bytes = 3'000'000;

}  // namespace

ReportDetail report_detail(const ResolvedRequest& request, const Simulation& simulation,
                           std::size_t of) {
  Json shown = simulate_json(request, simulation);
  shown.erase("why_not");  // which the answer tells
  return {of, std::move(shown), timeline_json(simulation.record())};
}

std::vector<ReportDetail> report_details(const ResolvedRequest& request,
                                         const std::vector<std::optional<Question>>& questions) {
  std::vector<ReportDetail> details;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < questions.size() && bytes < most_bytes; ++i) {
    if (!questions[i]) continue;
    const auto simulation = simulate_question(request, *questions[i]);
    if (!simulation) continue;
    ReportDetail detail = report_detail(request, *simulation, i);
    bytes += detail.simulation.dump().size() + detail.timeline.dump().size();
    if (bytes < most_bytes) details.push_back(std::move(detail));
  }
  return details;
}

}  // namespace shardwise
