#include "planner/commands/compare_schedules.hpp"

#include <algorithm>
#include <utility>

#include "planner/forecast/judgement.hpp"
#include "planner/report/html_report.hpp"
#include "planner/report/schedules_report.hpp"

namespace shardwise {

int compare_schedules_command(const Request& request, const Facts& facts, bool require_fit,
                              const Output& output) {
  const auto refuse = [&](const char* flag, const std::string& why) {
    return report_problems({{ProblemKind::request, flag, why}}, output);
  };
  if (request.plans.size() != 1)
    return refuse("--schedules", "compares the schedules of one --plan, such as --plan pp=4,ga=16");
  for (const auto& [asked, flag] :
       {std::pair(request.explain, "--explain"), std::pair(!request.why_not.empty(), "--why-not")})
    if (asked) return refuse(flag, "is about one plan; expected without --schedules");
  const auto resolved = resolve(request, facts, UnnamedMethods::one);
  if (!resolved) return report_problems(resolved.error(), output);
  const auto comparison = compare_schedules(*resolved, request.plans.front(), request.memory);
  if (!comparison) return report_problems(comparison.error(), output);
  const Json answer = schedules_json(*resolved, *comparison);
  const Problems unpublished = publish(output, answer, [] { return std::vector<ReportDetail>(); });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json)
    output.out << answer.dump(2) << '\n';
  else
    output.out << schedules_text(*resolved, *comparison);
  const auto fits = [&](const ScheduleRow& row) {
    return row.as_asked &&
           judged(row.as_asked->forecast, resolved->host_ram_stated) != Verdict::does_not_fit;
  };
  const auto& rows = comparison->rows;
  return require_fit && std::none_of(rows.begin(), rows.end(), fits) ? does_not_fit_code : 0;
}

}  // namespace shardwise
