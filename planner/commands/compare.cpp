#include "planner/commands/compare.hpp"

#include <algorithm>
#include <optional>

#include "planner/choice/asked_plan.hpp"
#include "planner/choice/usual_plans.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/commands/compare_boxes.hpp"
#include "planner/commands/compare_schedules.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/report/boxes_report.hpp"
#include "planner/report/explanation_report.hpp"
#include "planner/report/report_details.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/report/why_not_report.hpp"
#include "planner/request/named_boxes.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

struct Compared {
  std::string plan;
  std::optional<Question> question;
  std::optional<Forecast> forecast;
  Verdict verdict = Verdict::does_not_fit;
  Problems problems;  // why there is no forecast
};

Compared compared(const ResolvedRequest& r, const std::string& text) {
  const Cluster& cluster = r.clusters.front();
  const Method method = r.methods.front();
  Compared c{text, std::nullopt, std::nullopt, {}, {}};
  const ChosenWorkload first = choose_workload(r, method, cluster, 0);
  const auto plan = complete_plan(r, first.workload, cluster, text);
  if (!plan) {
    c.problems = plan.error();
    return c;
  }
  c.plan = whole_text(*plan);
  const ChosenWorkload chosen = choose_workload(r, method, cluster, *plan);
  c.question = Question{chosen.workload, *plan, cluster};
  auto f = forecast(*c.question, r.facts->profile, {.unfold = r.asked.unfold});
  if (!f) {
    c.problems = f.error();
    return c;
  }
  c.verdict = judged(*f, r.host_ram_stated);
  c.forecast = *std::move(f);
  return c;
}

Seconds exposed(const Forecast& f) {
  Seconds sum;
  for (const auto& [kind, t] : f.breakdown.exposed) sum += t;
  return sum;
}

// Fastest first; then what does not fit; then what cannot run at all.
bool compared_before(const Compared& a, const Compared& b) {
  const auto rank = [](const Compared& c) {
    return !c.forecast ? 2 : c.verdict == Verdict::does_not_fit ? 1 : 0;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return a.forecast && b.forecast &&
         a.forecast->step_time.expected < b.forecast->step_time.expected;
}

bool asks_amount(const ResolvedRequest& r) { return r.asked.samples || r.asked.tokens; }

Json compare_json(const ResolvedRequest& r, const std::vector<Compared>& list) {
  Json plans = Json::array();
  std::vector<const Question*> answered;
  for (const Compared& c : list) {
    if (c.forecast) answered.push_back(&*c.question);
    Json j = {{"plan", c.plan}};
    if (c.forecast) {
      const Forecast& f = *c.forecast;
      j["framework"] = c.question->workload.framework.id;
      j["settings"] = settings_json(*c.question);
      j["verdict"] = verdict_name(c.verdict);
      j["step_time_s"] = step_time_json(f.step_time);
      j["tokens_per_s"] = json_number(f.tokens_per_s);
      if (asks_amount(r)) j["time_s"] = json_number(r.tokens_in_all() / f.tokens_per_s);
      j["peak_memory_gib"] = memory_json(f.worst().peak);
      j["peak_memory_high_gib"] = json_gib(f.peak_device.high);
      j["capacity_gib"] = json_gib(f.worst().capacity);
      j["margin_gib"] = json_gib(f.margin);
      j["breakdown_gib"] = breakdown_json(f.worst().breakdown);
      add_host_ram(j, f.host);
      j["trust"] = trust_name(f.trust);
      j["breakdown_s"] = step_breakdown_json(f.breakdown);
      j["mfu"] = json_number(f.mfu);
      j["bubble_fraction"] = json_number(f.bubble_fraction);
      j["exposed_communication_s"] = json_number(exposed(f).value);
      if (r.asked.explain)
        j["explain"] = explanation_json(explain(*c.question, f, r.facts->profile));
    } else {
      j["problem"] = c.problems.front().what;
    }
    plans.push_back(j);
  }
  Json j = {{"schema_version", schema_version},
            {"command", "compare"},
            {"request", request_json(r, answered)},
            {"model", r.model.id},
            {"method", name(r.methods.front())},
            {"plans", plans},
            {"notes", r.notes}};
  const Compared& best = list.front();  // has a forecast: compare() has seen to it
  if (!r.asked.why_not.empty())
    j["why_not"] = why_not_json(why_not_asked(r, {*best.question, *best.forecast, best.verdict}));
  add_plan_files(j, r);
  return j;
}

// Sequences of a step, where all plans that can run take as many.
std::optional<int> common_batch(const std::vector<Compared>& list) {
  std::optional<int> batch;
  for (const Compared& c : list) {
    if (!c.forecast) continue;
    const int one = c.question->plan.global_batch();
    if (batch && *batch != one) return std::nullopt;
    batch = one;
  }
  return batch;
}

std::string compare_text(const ResolvedRequest& r, const std::vector<Compared>& list,
                         std::optional<int> columns) {
  const std::optional<int> batch = common_batch(list);
  Table t{
      {"plan", "step", "tokens/s", "GiB per GPU", "margin", "bubble", "exposed", "host", "verdict"},
      {}};
  if (!batch) t.header.insert(t.header.begin() + 1, "sequences");
  if (asks_amount(r)) t.header.push_back(sentence("time for ", told_amount(r)));
  std::string refused;
  for (const Compared& c : list) {
    if (!c.forecast) {
      refused += sentence("  ", c.plan, ": ", c.problems.front().what, "\n");
      continue;
    }
    const Forecast& f = *c.forecast;
    t.rows.push_back({c.plan, shown_time(f.step_time.expected), shown_rate(f.tokens_per_s),
                      shown_gib_number(f.worst().peak.device), shown_gib_number(f.margin),
                      fixed(100 * f.bubble_fraction, 1) + " %", shown_time(exposed(f)),
                      shown_time(f.breakdown.host), std::string(verdict_in_words(c.verdict))});
    std::vector<std::string>& row = t.rows.back();
    if (!batch) row.insert(row.begin() + 1, grouped(c.question->plan.global_batch()));
    if (asks_amount(r)) row.push_back(shown_time(Seconds(r.tokens_in_all() / f.tokens_per_s)));
  }
  const std::string each = batch ? sentence("x ", shown_samples(*batch, r.asked.preference))
                                 : std::string("per sequence");
  std::string text =
      sentence(r.model.id, ", ", name(r.methods.front()), ", ", grouped(r.sequence), " tokens ",
               each, " on ", r.clusters.front().spoken, "\n", shown_table(t, "  ", columns));
  if (!refused.empty()) text += sentence("cannot run\n", refused);
  for (const std::string& note : r.notes) text += sentence("  note: ", note, "\n");
  const Compared& best = list.front();
  if (r.asked.explain)
    text += explanation_text(explain(*best.question, *best.forecast, r.facts->profile));
  text += why_not_text(why_not_asked(r, {*best.question, *best.forecast, best.verdict}));
  return text;
}

// Two texts may say one plan: what they leave out is the framework's default. `list` is in the
// order of the plans asked for.
void note_same_plans(ResolvedRequest& r, const std::vector<Compared>& list) {
  for (std::size_t b = 1; b < list.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) {
      const std::string &first = r.asked.plans[a], &second = r.asked.plans[b];
      if (list[a].plan != list[b].plan || !list[b].forecast || first == second) continue;
      r.notes.push_back(sentence("--plan ", first, " and --plan ", second, " are both ",
                                 list[b].plan,
                                 ": what a plan leaves out is the framework's default."));
      break;
    }
}

void note_none_fits(ResolvedRequest& r, const std::vector<Compared>& list) {
  if (std::none_of(list.begin(), list.end(), [](const Compared& c) {
        return c.forecast && c.verdict != Verdict::does_not_fit;
      }))
    r.notes.emplace_back(
        "None of these fits: shardwise fit says what would make it fit, shardwise plan looks at "
        "all plans.");
}

void note_whole_weights(ResolvedRequest& r, const std::vector<Compared>& list) {
  for (const Compared& c : list) {
    if (!c.forecast) continue;
    const auto note = told_of_whole_weights(*c.question);
    if (note && std::find(r.notes.begin(), r.notes.end(), *note) == r.notes.end())
      r.notes.push_back(*note);
  }
}

}  // namespace

int compare(const Request& request, const Facts& facts, bool require_fit, const Output& output) {
  if (named_boxes(request.gpus.value_or("")).size() > 1)
    return compare_boxes_command(request, facts, require_fit, output);
  if (request.schedules) return compare_schedules_command(request, facts, require_fit, output);
  if (request.memory)
    return report_problems({{ProblemKind::request, "--memory", "goes with --schedules"}}, output);
  auto resolved = resolve(request, facts, UnnamedMethods::one);
  if (!resolved) return report_problems(resolved.error(), output);
  if (request.plans.empty() && request.plan_from.empty()) {
    resolved->asked.plans = usual_plans(resolved->model, resolved->clusters.front());
    if (resolved->asked.plans.empty())
      return report_problems(
          {{ProblemKind::request, "--plan",
            "is missing; one GPU has no layouts to set side by side: give plans that differ in "
            "something else, such as --plan mbs=1 --plan mbs=2, or several boxes, --gpus for "
            "each"}},
          output);
    resolved->notes.push_back(
        "No --plan: those that are usually compared; shardwise plan looks at all there are.");
  }
  const Problems unmultiplied = precision_problems(*resolved, resolved->clusters.front());
  if (!unmultiplied.empty()) return report_problems(unmultiplied, output);
  std::vector<Compared> list;
  for (const std::string& text : resolved->asked.plans) list.push_back(compared(*resolved, text));
  if (std::none_of(list.begin(), list.end(),
                   [](const Compared& c) { return c.forecast.has_value(); })) {
    Problems all;
    for (const Compared& c : list) all.insert(all.end(), c.problems.begin(), c.problems.end());
    return report_problems(all, output);
  }
  note_same_plans(*resolved, list);
  note_whole_weights(*resolved, list);
  note_none_fits(*resolved, list);
  std::stable_sort(list.begin(), list.end(), compared_before);
  const Json answer = compare_json(*resolved, list);
  const Problems unpublished = publish(output, answer, [&] {
    std::vector<std::optional<Question>> questions;
    for (const Compared& c : list) questions.push_back(c.forecast ? c.question : std::nullopt);
    return report_details(*resolved, questions);
  });
  if (!unpublished.empty()) return report_problems(unpublished, output);
  if (output.json)
    output.out << answer.dump(2) << '\n';
  else
    output.out << compare_text(*resolved, list, output.columns);
  const bool fits = list.front().verdict != Verdict::does_not_fit;  // what fits comes first
  return require_fit && !fits ? does_not_fit_code : 0;
}

}  // namespace shardwise
