#include "planner/commands/plan.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "catalog/names.hpp"
#include "planner/answers/run_outlook.hpp"
#include "planner/figures.hpp"
#include "planner/progress_line.hpp"
#include "planner/report/outlook_report.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/report_details.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_details = 20;  // steps in full

bool is_among(const std::vector<FoundPlan>& plans, const FoundPlan& one) {
  return std::any_of(plans.begin(), plans.end(),
                     [&](const FoundPlan& p) { return p.site == one.site && p.plan == one.plan; });
}

// The page numbers the best plans, then those of the front that are not among them.
std::vector<const FoundPlan*> shown_plans(const PlanAnswer& a) {
  std::vector<const FoundPlan*> shown;
  for (const FoundPlan& p : a.result.best) shown.push_back(&p);
  for (const FoundPlan& p : a.pareto)
    if (!is_among(a.result.best, p)) shown.push_back(&p);
  return shown;
}

// The steps of the best plans and, spread over them, of those of the front.
std::vector<ReportDetail> plan_details(const PlanAnswer& a) {
  const std::vector<const FoundPlan*> shown = shown_plans(a);
  const std::size_t best = std::min(a.result.best.size(), most_details / 3),
                    front = shown.size() - a.result.best.size();
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < best; ++i) places.push_back(i);
  const std::size_t every = std::max<std::size_t>(1, front / (most_details - best));
  for (std::size_t i = a.result.best.size(); i < shown.size(); i += every) places.push_back(i);
  std::vector<AskedDetail> asked;
  for (const std::size_t i : places) {
    const FoundPlan& p = *shown[i];
    const SearchSite& site = a.sites[p.site];
    const Workload& w = p.plan.zero_stage > 0 ? site.with_zero : site.without_zero;
    asked.push_back({&a.requests[p.site], {w, p.plan, site.cluster}, i});
  }
  return report_details(asked);
}

// Tells a terminal how the search goes.
Result<std::unique_ptr<PlanAnswer>> watched_answer(const Request& request, const Facts& facts,
                                                   std::ostream* terminal) {
  ProgressLine progress(terminal);
  PlanWish wish = plan_wish(request);
  if (terminal != nullptr)
    wish.told = [&](std::int64_t looked, const std::function<std::int64_t()>& waiting) {
      progress.tell([&](Seconds taken) {
        const auto rest = static_cast<double>(waiting()), done = static_cast<double>(looked);
        return sentence("plan: ", looked, " sets of plans looked at, ", waiting(),
                        " may hold a better one, ", shown_rest(taken, done, done + rest));
      });
    };
  return plan_answer(request, wish, facts);
}

// The whole run by the first plan that can be started, where the request states how much data there
// is; by the first of all where none can.
Result<std::optional<RunOutlook>> outlook_of_best(const PlanAnswer& a) {
  std::optional<RunOutlook> nothing;
  const Request& asked = a.request.asked;
  if ((!asked.samples && !asked.tokens) || a.result.best.empty()) return nothing;
  const auto operations = load_operations(a.request.facts->catalog.root);
  if (!operations) return operations.error();
  const FoundPlan& first = a.result.best.front();
  const FoundPlan& best = a.startable ? *a.startable : first;
  const SearchSite& site = a.sites[best.site];
  auto outlook =
      run_outlook(a.requests[best.site], {site.space.workload(best.plan), best.plan, site.cluster},
                  best.forecast, *operations);
  if (outlook && !(best.plan == first.plan))
    outlook->notes.insert(outlook->notes.begin(),
                          sentence("Of ", whole_text(best.plan),
                                   ", which shardwise launch can start, not of the first plan."));
  return outlook;
}

}  // namespace

void add_plan_flags(CLI::App& command, PlanOptions& options) {
  command.get_option("--objective")->description(joined(names_in(objectives())) + " (time)");
  command.add_flag("--elapsed", options.elapsed, "with --json: add elapsed_s");
}

int plan(const Request& request, const PlanOptions& options, const Facts& facts,
         const Output& output) {
  const auto begin = std::chrono::steady_clock::now();
  if ((request.samples || request.tokens) &&
      request.gpus.value_or("").find("..") != std::string::npos)
    return report_problems(
        {{ProblemKind::request, request.samples ? "--samples" : "--tokens",
          sentence("tells the whole run on GPUs of one size, found ", *request.gpus)}},
        output);
  const auto answer = watched_answer(request, facts, output.progress);
  if (!answer) return report_problems(answer.error(), output);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto outlook = outlook_of_best(**answer);
  if (!outlook) return report_problems(outlook.error(), output);
  Json j = plan_json(**answer);
  if (*outlook) j["outlook"] = outlook_json(**outlook);
  const Problems unpublished = publish(output, j, [&] { return plan_details(**answer); });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json) {
    if (options.elapsed) j["elapsed_s"] = json_number(took.count());
    output.out << j.dump(2) << '\n';
  } else {
    output.out << plan_text(**answer, output.columns)
               << (*outlook ? outlook_text(**outlook) : std::string());
  }
  output.err << "searched in " << fixed(took.count(), 2) << " s\n";
  return options.require_fit && (*answer)->result.best.empty() ? does_not_fit_code : 0;
}

}  // namespace shardwise
