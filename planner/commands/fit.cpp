#include "planner/commands/fit.hpp"

#include <algorithm>

#include "planner/answers/fit_answer.hpp"
#include "planner/report/fit_json.hpp"
#include "planner/report/fit_text.hpp"
#include "planner/report/report_details.hpp"

namespace shardwise {

int fit(const Request& request, const Facts& facts, bool require_fit, const Output& output) {
  const auto resolved = resolve(request, facts, UnnamedMethods::fine_tuning);
  if (!resolved) return report_problems(resolved.error(), output);
  const bool wanted = output.json || !output.report.empty();
  const FitAnswers answers = fit_answers(*resolved, wanted ? FitTold::whole : FitTold::in_text);
  if (answers.answers.empty()) {
    Problems problems;
    for (const UnplannedMethod& u : answers.unplanned) add_problems(problems, u.problems);
    return report_problems(problems, output);
  }
  const Json answer = wanted ? fit_json(*resolved, answers) : Json();
  const Problems unpublished = publish(output, answer, [&] {
    std::vector<std::optional<Question>> questions;
    for (const FitAnswer& a : answers.answers) questions.emplace_back(a.chosen.question);
    return report_details(*resolved, questions);
  });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json)
    output.out << answer.dump(2) << '\n';
  else
    output.out << fit_text(*resolved, answers, output.width);
  const bool fits =
      std::any_of(answers.answers.begin(), answers.answers.end(),
                  [](const FitAnswer& a) { return a.chosen.verdict != Verdict::does_not_fit; });
  const int code = require_fit && !fits ? does_not_fit_code : 0;
  if (output.leave != nullptr) output.leave(code);
  return code;
}

}  // namespace shardwise
