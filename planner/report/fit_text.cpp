#include "planner/report/fit_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/answers/plan_starts.hpp"
#include "planner/figures.hpp"
#include "planner/report/adapter_words.hpp"
#include "planner/report/bar.hpp"
#include "planner/report/explanation_report.hpp"
#include "planner/report/host_ram_text.hpp"
#include "planner/report/layout_words.hpp"
#include "planner/report/length_report.hpp"
#include "planner/report/reach_report.hpp"
#include "planner/report/table.hpp"
#include "planner/report/why_not_report.hpp"
#include "planner/request/spoken_request.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

std::vector<const StageForecast*> fullest_of_others(const Forecast& f) {
  std::vector<const StageForecast*> fullest;
  for (const StageForecast& s : f.stages) {
    if (s.gpu == f.worst().gpu) continue;
    const auto same = std::find_if(fullest.begin(), fullest.end(),
                                   [&](const StageForecast* o) { return o->gpu == s.gpu; });
    if (same == fullest.end())
      fullest.push_back(&s);
    else if ((*same)->peak.device < s.peak.device)
      *same = &s;
  }
  return fullest;
}

namespace {

std::vector<const FitAnswer*> of_method(const FitAnswers& all, Method method) {
  std::vector<const FitAnswer*> list;
  for (const FitAnswer& a : all.answers)
    if (a.method == method) list.push_back(&a);
  return list;
}

Bytes memory_of(const Cluster& cluster) {
  Bytes sum;
  for (const NodeGroup& g : cluster.groups)
    sum += static_cast<std::int64_t>(g.gpus()) * (g.gpu.memory - g.gpu.memory_taken);
  return sum;
}

// Sequences per step of the plans shown: a plan may say its own. Where plans round one batch up,
// each to its own rounds, it is the one that all were to have (request_json.cpp).
int batch_shown(const ResolvedRequest& r, const FitAnswers& all) {
  if (r.asked.batch || all.answers.empty()) return r.batch;
  const auto of = [](const FitAnswer& a) { return a.chosen.question.plan.global_batch(); };
  const auto first = of(all.answers.front());
  const bool one = std::all_of(all.answers.begin(), all.answers.end(),
                               [&](const FitAnswer& a) { return of(a) == first; });
  return one ? first : r.batch;
}

std::string fit_head_line(const ResolvedRequest& r, const FitAnswers& all) {
  const Cluster& c = r.clusters.front();
  return sentence(r.model.id, " (", shown_parameters(parameter_count(r.model).total),
                  " parameters) on ", c.spoken.empty() ? *r.asked.gpus : c.spoken, ", ",
                  counted(r.sequence, "token"), " per sequence, ",
                  shown_samples(batch_shown(r, all), r.asked.preference), " per step\n");
}

// Large sums are also said in the decimal units that papers use.
std::string shown_terabytes(Bytes bytes) {
  const double tb = static_cast<double>(bytes.value) / 1e12;
  return tb < 1 ? "" : sentence(" (", fixed(tb, 1), " TB)");
}

// In a box of several kinds of card the figures are those of one.
std::string on_card(const FitAnswer& a, const StageForecast& s) {
  const std::vector<NodeGroup>& groups = a.chosen.question.cluster.groups;
  const bool mixed = std::any_of(groups.begin(), groups.end(), [&](const NodeGroup& g) {
    return g.gpu.id != groups.front().gpu.id;
  });
  return mixed ? sentence(" on the ", s.gpu) : std::string(" per GPU");
}

bool trains_in_more(const HostMemory& host) { return host.steady > host.load_peak; }

std::string line_start(Method method) {
  return sentence("  ", name(method), std::string(9 - name(method).size(), ' '));
}

std::string unplanned_line(const UnplannedMethod& u) {
  return line_start(u.method) + "no plan: " + u.problems.front().what + "\n";
}

// One line per method: the verdict and the figure that decides.
std::string verdict_line(const ResolvedRequest& r, Method method,
                         const std::vector<const FitAnswer*>& list) {
  const FitAnswer& a = *list.front();
  const StageForecast& s = a.chosen.forecast.worst();
  const auto fitting =
      static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](const FitAnswer* x) {
        return x->chosen.verdict != Verdict::does_not_fit;
      }));
  std::string line = line_start(method);
  const Bytes total = memory_of(r.clusters[a.cluster]);
  if (fitting == 0 && !a.chosen.forecast.host_fits && a.chosen.forecast.margin >= Bytes(0))
    return line +
           sentence(
               "does not fit the host: ",
               trains_in_more(a.chosen.forecast.host) ? "training" : "loading", " takes ",
               shown_gib(std::max(a.chosen.forecast.host.load_peak, a.chosen.forecast.host.steady)),
               " of ", shown_gib(a.chosen.forecast.host.available.value_or(Bytes(0))), " of RAM\n");
  const Offload& host = a.chosen.question.plan.offload;
  const bool states_on_gpus = !host.optimizer && !host.parameters;
  if (fitting == 0 && states_on_gpus && a.model_states > total)
    return line + sentence("does not fit: model states alone are ", shown_gib(a.model_states),
                           shown_terabytes(a.model_states), " against ", shown_gib(total),
                           " of GPU memory in all\n");
  // What tensors take and what lies outside the allocator would fit; its blocks do not.
  const Bytes unbroken = s.peak.allocated + (s.peak.device - s.peak.reserved);
  if (fitting == 0 && unbroken <= s.capacity)
    return line + sentence("does not fit: ", shown_gib(unbroken), " of ", shown_gib(s.capacity),
                           on_card(a, s), " would do, but fragmentation makes it ",
                           shown_gib(s.peak.device), "\n");
  if (fitting == 0)
    return line + sentence("does not fit: needs at least ", shown_gib(s.peak.device), " of ",
                           shown_gib(s.capacity), on_card(a, s), " (short by ",
                           shown_difference(s.peak.device - s.capacity), ")\n");
  const FitAnswer& good = **std::find_if(list.begin(), list.end(), [](const FitAnswer* x) {
    return x->chosen.verdict != Verdict::does_not_fit;
  });
  const char* verdict = good.chosen.verdict == Verdict::fits ? "FITS" : "FITS, TIGHTLY";
  const StageForecast& g = good.chosen.forecast.worst();
  line +=
      sentence(verdict, ": ", layout_words(good.chosen.question.plan), "; ",
               g.cache_fills() ? "needs " : "", shown_gib(g.needed), " of ", shown_gib(g.capacity),
               on_card(good, g), g.cache_fills() ? ", the rest is the allocator's cache" : "",
               good.chosen.question.plan.offload == Offload{} ? ", without offload" : "");
  if (fitting < list.size()) line += sentence("; on ", fitting, " of ", list.size(), " cards");
  return line + "\n";
}

std::string hours(const ResolvedRequest& r, const Forecast& f) {
  return shown_time(Seconds(r.tokens_in_all() / f.tokens_per_s));
}

std::string amount(const ResolvedRequest& r) {
  if (r.asked.tokens) return sentence("time for ", counted(*r.asked.tokens, "token"));
  return sentence("time for ", counted(r.asked.samples.value_or(ResolvedRequest::usual_samples),
                                       r.lengths ? "full sequence" : "sample"));
}

std::vector<std::string> memory_cells(const StageForecast& s) {
  return {s.gpu, shown_gib_number(s.peak.allocated), shown_gib_number(s.peak.reserved),
          shown_gib_number(s.peak.device), shown_gib_number(s.capacity)};
}

std::string card_table(const ResolvedRequest& r, const std::vector<const FitAnswer*>& list) {
  Table t;
  t.header = {"card",    "allocated", "reserved", "device", "of",
              "verdict", "step",      "tokens/s", amount(r)};
  for (const FitAnswer* a : list) {
    const StageForecast& s = a->chosen.forecast.worst();
    const Forecast& f = a->chosen.forecast;
    t.rows.push_back(memory_cells(s));
    t.rows.back().front() = a->gpu;
    t.rows.back().emplace_back(verdict_name(a->chosen.verdict));
    if (f.tokens_per_s > 0)  // else its step is too long to be forecast
      for (std::string& cell : std::vector<std::string>{shown_time(f.step_time.expected),
                                                        shown_rate(f.tokens_per_s), hours(r, f)})
        t.rows.back().push_back(std::move(cell));
    for (const StageForecast* other : fullest_of_others(f)) t.rows.push_back(memory_cells(*other));
  }
  return sentence("  memory per GPU in GiB\n", shown_table(t));
}

std::string category_bars(const FitAnswer& a, int width) {
  const StageForecast& s = a.chosen.forecast.worst();
  std::vector<std::pair<std::int64_t, std::size_t>> parts;
  for (std::size_t c = 0; c < memory_category_count; ++c)
    if (s.breakdown[c] > (8 << 20)) parts.emplace_back(s.breakdown[c], c);
  std::sort(parts.rbegin(), parts.rend());
  std::string text = sentence("  where the memory of one ", a.gpu, " goes at its peak\n");
  const int bar = std::clamp(width - 40, 10, 50);
  for (const auto& [bytes, c] : parts) {
    const std::string label(memory_category_names[c]);
    const std::string size = shown_gib(Bytes(bytes));
    text += sentence("    ", label, std::string(21 - std::min<std::size_t>(label.size(), 20), ' '),
                     std::string(10 - std::min<std::size_t>(size.size(), 9), ' '), size, "  ",
                     shown_bar(Bytes(bytes) / s.capacity, bar), "\n");
  }
  return text;
}

// The framework where it is another than the answer's, and the target of launch that runs it.
std::string run_by(const Advice& x, const FitAnswer& a) {
  const Framework& f = x.question.workload.framework;
  const auto targets = own_targets(x.question);
  const bool told = x.change.find("--framework ") != std::string::npos;
  const bool same = f.id == a.chosen.question.workload.framework.id;
  return sentence(told || same ? "" : " in " + f.name,
                  targets.empty() ? "" : sentence(" (--target ", targets.front(), ")"));
}

// Where next to nothing is left of a time, how little says more than how much less.
std::string time_change(double ratio) {
  if (ratio > 0 && ratio < 0.01)
    return sentence("1/", grouped(std::llround(1 / ratio)), " of the time per token");
  return sentence(shown_percent(ratio - 1), " time per token");
}

// `step`: told before how much that changes.
std::string advice_line(const Advice& x, const FitAnswer& a, const std::string& step) {
  std::string text =
      sentence("    - ", x.change, ": ", shown_gib(x.needed), x.needed < x.device ? " + cache" : "",
               " per GPU", x.verdict == Verdict::tight ? ", tightly (" : " (",
               x.memory_effect > Bytes(0) ? "+" : "", shown_difference(x.memory_effect), ")", step);
  if (x.time_ratio) text += sentence(", ", time_change(*x.time_ratio));
  return text + sentence("; plan ", x.plan, run_by(x, a), "\n");
}

std::string faster_text(const FitAnswer& a) {
  std::string text;
  for (const Advice& x : a.faster) {
    text += text.empty() ? "  what would make it faster\n" : "";
    text += advice_line(x, a, sentence(", ", shown_time(x.step_time.expected), " a step"));
    if (x.request) text += sentence("      in full: ", spoken_request("fit", *x.request), "\n");
  }
  return text;
}

std::string advice_text(const FitAnswer& a) {
  const bool tight = a.chosen.verdict == Verdict::tight;
  if (a.advice.empty())
    return a.chosen.verdict != Verdict::does_not_fit
               ? ""
               : "  nothing within reach makes it fit: shorter sequences, another optimizer, LoRA "
                 "or QLoRA, offload, sixteen cards or four times as many, four times their "
                 "memory\n";
  std::string text =
      sentence("  what would ", tight ? "leave room" : "make it fit", ", smallest change first\n");
  for (const Advice& x : a.advice) text += advice_line(x, a, "");
  if (const auto& first = a.advice.front().request)
    text += sentence("  the first in full: ", spoken_request("fit", *first), "\n");
  return text;
}

// Cards of several kinds step together, at the pace of the slowest.
std::string step_on(const FitAnswer& a) {
  const Cluster& cluster = a.chosen.question.cluster;
  return cluster.groups.size() > 1 ? cluster.spoken + ", together" : a.gpu;
}

std::string step_line(const FitAnswer& a) {
  const Forecast& f = a.chosen.forecast;
  std::string text = sentence(
      "  plan ", whole_text(a.chosen.question.plan), " in ",
      a.chosen.question.workload.framework.name, "\n", adapter_text(a.chosen.question.workload),
      "  step on ", step_on(a), ": ", shown_time(f.step_time.expected), " (80 % interval ",
      shown_time(f.step_time.low), " to ", shown_time(f.step_time.high), ")");
  for (const auto& [kind, t] : f.breakdown.exposed)
    if (t.value > 0.02 * f.step_time.expected.value)
      text += sentence(", ", shown_time(t), " of it waiting for ", kind);
  return text + "\n" + host_ram_text(f, "about ");
}

// What was asked about the answer shown.
std::string asked_text(const ResolvedRequest& r, const FitAnswer& a) {
  const ChosenPlan& c = a.chosen;
  std::string text;
  if (r.asked.explain) text += explanation_text(explain(c.question, c.forecast, r.facts->profile));
  return text + why_not_text(why_not_asked(r, {c.question, c.forecast, c.verdict}));
}

std::string reach_part(const ResolvedRequest& r, const std::vector<const FitAnswer*>& list) {
  for (const FitAnswer* a : list)
    if (a->reach) return reach_text(*a->reach, r);
  return "";
}

// What the host lacks, of a plan that does not fit.
std::string host_line(const Forecast& f) {
  if (f.host_fits) return "";
  const char* const head =
      f.margin < Bytes(0) ? "  the host lacks RAM as well: " : "  the host decides: ";
  if (trains_in_more(f.host))
    return sentence(head, "what is offloaded and pinned takes ", shown_gib(f.host.steady),
                    " while training\n");
  if (f.host.load_once >= f.host.load_peak)
    return sentence(head, "reading the weights takes ", shown_gib(f.host.load_peak), "\n");
  return sentence(head, "every rank reads its own copy of the weights, ",
                  shown_gib(f.host.load_peak),
                  " in all; reading them once (rank 0, others on the meta device) would take ",
                  shown_gib(f.host.load_once), "\n");
}

std::string method_part(const ResolvedRequest& r, Method method,
                        const std::vector<const FitAnswer*>& list, int width) {
  std::string text = sentence("\n", name(method), "\n");
  const auto good = std::find_if(list.begin(), list.end(), [](const FitAnswer* x) {
    return x->chosen.verdict != Verdict::does_not_fit;
  });
  if (good != list.end()) {
    text += step_line(**good) + card_table(r, list);
    if ((*good)->lengths) text += length_text(*(*good)->lengths, (*good)->chosen.question.workload);
    text += category_bars(**good, width);
    for (const std::string& warning : (*good)->warnings)
      text += sentence("  warning: ", warning, "\n");
    for (const std::string& note : (*good)->chosen.notes) text += sentence("  note: ", note, "\n");
    return text + sentence("  note: ", (*good)->started, "\n") + advice_text(**good) +
           faster_text(**good) + reach_part(r, list) + asked_text(r, **good);
  }
  const FitAnswer& a = *list.front();
  const Workload& w = a.chosen.question.workload;
  text += sentence("  nearest plan ", whole_text(a.chosen.question.plan), " in ", w.framework.name,
                   ": ", shown_gib(a.chosen.forecast.worst().peak.device),
                   " per GPU, model states ", shown_gib(a.model_states), " in all, ",
                   fixed(static_cast<double>(a.model_states.value) /
                             static_cast<double>(parameter_count(w.model).total),
                         1),
                   " bytes per parameter\n");
  if (a.chosen.forecast.tokens_per_s <= 0)
    text += "  its step would be longer than the 106 days that can be forecast\n";
  return text + host_line(a.chosen.forecast) + advice_text(a) + reach_part(r, list) +
         asked_text(r, a);
}

}  // namespace

std::string fit_text(const ResolvedRequest& r, const FitAnswers& all, int width) {
  std::string text = fit_head_line(r, all);
  const auto last = [](const std::string& note) { return note == framework_follows_gpus_note; };
  for (const std::string& note : r.notes)
    if (!last(note)) text += sentence("  ", note, "\n");
  text += "\n";
  for (const Method method : r.methods)
    if (const auto list = of_method(all, method); !list.empty())
      text += verdict_line(r, method, list);
    else
      for (const UnplannedMethod& u : all.unplanned)
        if (u.method == method) text += unplanned_line(u);
  for (const Method method : r.methods)
    if (const auto list = of_method(all, method); !list.empty())
      text += method_part(r, method, list, width);
  text += "\n";
  if (std::any_of(r.notes.begin(), r.notes.end(), last))
    text += sentence(framework_follows_gpus_note, "\n");
  if (r.clusters.front().nodes() > 1)
    text += "A few plans were tried; of all there are, the fastest: shardwise plan\n";
  text += "How wrong we are on published runs: shardwise validate\n";
  return text;
}

}  // namespace shardwise
