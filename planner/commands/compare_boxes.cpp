#include "planner/commands/compare_boxes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/answers/boxes_answer.hpp"
#include "planner/report/boxes_report.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

int compare_boxes_command(const Request& request, const Facts& facts, bool require_fit,
                          const Output& output) {
  for (const auto& [asked, flag] :
       {std::pair(request.schedules, "--schedules"),
        std::pair(request.memory.has_value(), "--memory"), std::pair(request.explain, "--explain"),
        std::pair(!request.why_not.empty(), "--why-not"),
        std::pair(!output.report.empty() || output.document != nullptr, "--report")})
    if (asked)
      return report_problems(
          {{ProblemKind::request, flag, "is about one box; expected one --gpus"}}, output);
  if (request.plans.size() > 1)
    return report_problems({{ProblemKind::request, "--plan",
                             sentence("given ", request.plans.size(),
                                      " times beside several boxes; each gets the plan that suits "
                                      "it, or one that is asked for")}},
                           output);
  const auto answer = boxes_answer(request, facts);
  if (!answer) return report_problems(answer.error(), output);
  const auto& rows = answer->rows;
  if (std::none_of(rows.begin(), rows.end(), [](const BoxRow& r) { return r.chosen; }))
    return report_problems({{ProblemKind::request, "--gpus", rows.front().problem}}, output);
  if (output.json)
    output.out << boxes_json(request, *answer).dump(2) << '\n';
  else
    output.out << boxes_text(*answer, output.columns);
  const bool fits = std::any_of(rows.begin(), rows.end(), [](const BoxRow& r) { return r.fits(); });
  return require_fit && !fits ? does_not_fit_code : 0;
}

}  // namespace shardwise
