#include "planner/commands/plan.hpp"

#include <CLI/CLI.hpp>
#include <chrono>

#include "planner/figures.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/report_details.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_details = 6;  // steps in full of the best plans

std::vector<ReportDetail> plan_details(const PlanAnswer& a) {
  std::vector<std::optional<Question>> questions;
  for (const FoundPlan& p : a.result.best) {
    const SearchSite& site = a.sites[p.site];
    if (questions.size() == most_details || p.site != a.result.best.front().site) break;
    const Workload& w = p.plan.zero_stage > 0 ? site.with_zero : site.without_zero;
    questions.emplace_back(Question{w, p.plan, site.cluster});
  }
  return questions.empty() ? std::vector<ReportDetail>()
                           : report_details(a.requests[a.result.best.front().site], questions);
}

}  // namespace

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
  command.add_flag("--pareto", wish.pareto,
                   "also the plans that no other beats in time, memory and rent at once");
  command.add_flag("--elapsed", options.elapsed, "with --json: add elapsed_s");
}

int plan(const Request& request, const PlanOptions& options, const Facts& facts,
         const Output& output) {
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = plan_answer(request, options.wish, facts);
  if (!answer) return report_problems(answer.error(), output);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  Json j = plan_json(**answer);
  const Problems unpublished = publish(output, j, [&] { return plan_details(**answer); });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json) {
    if (options.elapsed) j["elapsed_s"] = json_number(took.count());
    output.out << j.dump(2) << '\n';
  } else {
    output.out << plan_text(**answer);
  }
  output.err << "searched in " << fixed(took.count(), 2) << " s\n";
  return 0;
}

}  // namespace shardwise
