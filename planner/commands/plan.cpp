#include "planner/commands/plan.hpp"

#include <CLI/CLI.hpp>
#include <chrono>

#include "planner/figures.hpp"
#include "planner/report/plan_report.hpp"

namespace shardwise {

void add_plan_flags(CLI::App& command, PlanOptions& options) {
  PlanWish& wish = options.wish;
  std::string names;
  for (const Objective& o : objectives())
    names += (names.empty() ? "" : ", ") + std::string(o.name);
  command.add_option("--top", wish.top, "how many plans (10)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command.add_option("--objective", wish.objective, names + " (time)")->type_name("NAME");
  command
      .add_option("--max-memory", wish.memory_fraction,
                  "the most of a GPU's memory that a plan may be forecast to use (1)")
      ->check(CLI::Range(0.05, 1.0))
      ->type_name("FRACTION");
  command.add_flag("--allow-tight", wish.allow_tight,
                   "also plans whose memory interval ends above the card");
  command.add_flag("--elapsed", options.elapsed, "with --json: add elapsed_s");
}

int plan(const Request& request, const PlanOptions& options, const Facts& facts,
         const Output& output) {
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = plan_answer(request, options.wish, facts);
  if (!answer) return report_problems(answer.error(), output);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (output.json) {
    Json j = plan_json(**answer);
    if (options.elapsed) j["elapsed_s"] = json_number(took.count());
    output.out << j.dump(2) << '\n';
  } else {
    output.out << plan_text(**answer);
  }
  output.err << "searched in " << fixed(took.count(), 2) << " s\n";
  return 0;
}

}  // namespace shardwise
