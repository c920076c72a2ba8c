#include "planner/commands/compare_schedules.hpp"

#include "planner/figures.hpp"
#include "planner/report/html_report.hpp"
#include "planner/report/schedules_report.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

int compare_schedules_command(const Request& request, const Facts& facts,
                              const CompareOptions& options, const Output& output) {
  const auto refuse = [&](const char* flag, const std::string& why) {
    return report_problems({{ProblemKind::request, flag, why}}, output);
  };
  if (request.plans.size() != 1)
    return refuse("--schedules", "compares the schedules of one --plan, such as --plan pp=4,ga=16");
  std::optional<Bytes> budget;
  if (!options.memory.empty()) {
    budget = size_in(options.memory);
    if (!budget || *budget <= Bytes(0))
      return refuse("--memory", sentence("\"", options.memory,
                                         "\" is not a size with its unit, such as 60GiB"));
  }
  const auto resolved = resolve(request, facts, UnnamedMethods::one);
  if (!resolved) return report_problems(resolved.error(), output);
  const auto comparison = compare_schedules(*resolved, request.plans.front(), budget);
  if (!comparison) return report_problems(comparison.error(), output);
  const Json answer = schedules_json(*resolved, *comparison);
  const Problems unpublished = publish(output, answer, [] { return std::vector<ReportDetail>(); });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json)
    output.out << answer.dump(2) << '\n';
  else
    output.out << schedules_text(*resolved, *comparison);
  return 0;
}

}  // namespace shardwise
