#include "planner/commands/simulate.hpp"

#include <CLI/CLI.hpp>
#include <cmath>

#include "catalog/whole_file.hpp"
#include "planner/answers/length_outlook.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/report/html_report.hpp"
#include "planner/report/length_report.hpp"
#include "planner/report/measured_report.hpp"
#include "planner/report/outlook_report.hpp"
#include "planner/report/pipeline_drawing.hpp"
#include "planner/report/simulate_json.hpp"
#include "planner/report/simulate_text.hpp"
#include "planner/report/timeline_json.hpp"
#include "planner/report/trace.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

Variation variation(const Request& asked) {
  return {asked.jitter.value_or(0), asked.straggler.value_or(1),
          static_cast<std::uint64_t>(asked.seed.value_or(0))};
}

// Nobody named the plan that is simulated.
std::string told_of_assumed_plan(const Question& q) {
  return sentence("No plan named: the one that ", q.workload.framework.name,
                  " would run by default; --plan says another, shardwise ",
                  q.plan.gpus() > 1 ? "plan" : "fit", " finds the fastest that fits.");
}

Result<Simulation> simulated(const ResolvedRequest& r) {
  const Cluster& cluster = r.clusters.front();
  const Method method = r.methods.front();
  if (r.asked.plans.size() > 1)
    return Problem{
        ProblemKind::request, "--plan",
        sentence("expected one plan, found ", r.asked.plans.size(), "; compare judges several")};
  if (Problems problems = precision_problems(r, cluster); !problems.empty()) return problems;
  const std::string text = r.asked.plans.empty() ? std::string() : r.asked.plans.front();
  ChosenWorkload chosen = choose_workload(r, method, cluster, 0);
  auto plan = complete_plan(r, chosen.workload, cluster, text);
  if (!plan) return plan.error();
  chosen = choose_workload(r, method, cluster, *plan);
  auto played = simulate_question(r, {chosen.workload, *plan, cluster}, variation(r.asked));
  if (!played) return played.error();
  Simulation s = *std::move(played);
  if (text.empty()) s.notes.insert(s.notes.begin(), told_of_assumed_plan(s.question));
  s.notes.insert(s.notes.begin(), chosen.notes.begin(), chosen.notes.end());
  s.notes.insert(s.notes.begin(), r.notes.begin(), r.notes.end());
  return s;
}

// A run takes as many steps as its samples make, each as long as padding makes it on average.
Forecast with_lengths(Forecast f, const std::optional<LengthOutlook>& lengths) {
  if (lengths && lengths->padded) f.step_time.expected = lengths->padded->step;
  return f;
}

void count_tokens_of_samples(const LengthOutlook& lengths, const ResolvedRequest& r,
                             RunOutlook& outlook) {
  const double mean = static_cast<double>(lengths.tokens) / static_cast<double>(lengths.samples);
  outlook.tokens = std::llround(mean * static_cast<double>(*r.asked.samples));
}

// Where batches are padded: the interval of a full step about the mean one, and its share of FLOPs
// is by the tokens of samples.
std::optional<MeasuredStep> measured_beside(const ResolvedRequest& r, const Simulation& s,
                                            const std::optional<LengthOutlook>& lengths) {
  if (!r.asked.measured_step_s) return std::nullopt;
  Forecast f = with_lengths(s.forecast, lengths);
  const double shorter = f.step_time.expected / s.forecast.step_time.expected;
  f.step_time.low = shorter * f.step_time.low;
  f.step_time.high = shorter * f.step_time.high;
  if (lengths && lengths->padded) {
    f.mfu = f.mfu * lengths->padded->tokens_per_s / f.tokens_per_s;
    f.tokens_per_s = lengths->padded->tokens_per_s;
  }
  return measured_step(Seconds(*r.asked.measured_step_s), f, s.question.plan.microbatches);
}

}  // namespace

void add_simulate_flags(CLI::App& command, SimulateOptions& options) {
  command.add_flag("--draw", options.draw, "draw the pipeline: a row per stage, time across");
  command
      .add_option("--trace", options.trace, "write the step as a Chrome trace, for ui.perfetto.dev")
      ->type_name("FILE");
}

int simulate(const Request& request, const Facts& facts, const SimulateOptions& options,
             const Output& output) {
  const auto resolved = resolve(request, facts, UnnamedMethods::one);
  if (!resolved) return report_problems(resolved.error(), output);
  const auto s = simulated(*resolved);
  if (!s) return report_problems(placed(*resolved, s.error()), output);
  if (!options.trace.empty()) {
    const Problems problems = write_whole_file(
        options.trace, [&](std::ostream& file) { write_trace(s->record(), file); });
    if (!problems.empty()) return report_problems(problems, output);
  }
  const auto lengths = length_outlook(*resolved, s->question, s->forecast);
  std::optional<RunOutlook> outlook;
  if (resolved->asked.tokens || resolved->asked.samples) {
    const auto operations = load_operations(facts.catalog.root);
    if (!operations) return report_problems(operations.error(), output);
    outlook = run_outlook(*resolved, s->question, with_lengths(s->forecast, lengths), *operations);
    if (lengths) count_tokens_of_samples(*lengths, *resolved, *outlook);
  }
  const auto measured = measured_beside(*resolved, *s, lengths);
  Json answer = simulate_json(*resolved, *s);
  if (lengths) answer["lengths"] = length_json(*lengths);
  if (outlook) answer["outlook"] = outlook_json(*outlook);
  if (measured) answer["measured"] = measured_json(*measured);
  std::optional<MeasuredMemory> memory;
  if (const auto& bytes = resolved->asked.measured_memory)
    memory = measured_memory(*bytes, s->forecast);
  if (memory) answer["measured_memory"] = measured_json(*memory);
  const Problems unpublished = publish(output, answer, [&] {
    return std::vector<ReportDetail>{{0, Json(), timeline_json(s->record())}};
  });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json) {
    output.out << answer.dump(2) << '\n';
  } else {
    output.out << simulate_text(*resolved, *s)
               << (lengths ? length_text(*lengths, s->question.workload) : "")
               << (outlook ? outlook_text(*outlook) : "")
               << (measured ? measured_text(*measured) : "")
               << (memory ? measured_text(*memory) : "");
  }
  if (options.draw)
    (output.json ? output.err : output.out)
        << pipeline_drawing(s->record().step, {output.width, output.colour && !output.json});
  return options.require_fit && s->verdict == Verdict::does_not_fit ? does_not_fit_code : 0;
}

}  // namespace shardwise
