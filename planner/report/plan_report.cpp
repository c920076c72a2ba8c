#include "planner/report/plan_report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/report/adapter_words.hpp"
#include "planner/report/output.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string shown_memory(const Forecast& f) {
  return sentence(shown_gib_number(f.worst().needed), f.worst().cache_fills() ? " + cache" : "",
                  " of ", shown_gib(f.worst().capacity));
}

std::string shown_rent(std::optional<double> usd) {
  return usd ? sentence("$", fixed(*usd, *usd < 10 ? 3 : 1)) : std::string("-");
}

std::string plan_head_line(const PlanAnswer& a) {
  const ResolvedRequest& r = a.request;
  return sentence(r.model.id, ", ", name(a.method), " in ",
                  a.sites.back().without_zero.framework.name, ", ", grouped(r.sequence),
                  " tokens x ", shown_samples(r.batch, r.asked.preference), " per step, on ",
                  r.asked.gpus.value_or(""), '\n');
}

// Of plans that the usual framework cannot be told, a note says why; and of those without room.
std::string marked(const PlanAnswer& a, const FoundPlan& p) {
  return sentence(whole_text(p.plan), beyond_usual(a, p) ? " *" : "",
                  p.forecast.verdict == Verdict::tight ? " (tight)" : "");
}

std::vector<std::string> cells_of(const PlanAnswer& a, const FoundPlan& p) {
  const Forecast& f = p.forecast;
  return {shown_time(f.step_time.expected),
          shown_rate(f.tokens_per_s),
          shown_share(f.mfu),
          shown_share(f.bubble_fraction),
          shown_memory(f),
          shown_rent(usd_per_million_tokens(a.sites[p.site], f))};
}

Table plan_table(const PlanAnswer& a, const std::vector<FoundPlan>& plans) {
  Table t{{"plan", "step", "tokens/s", "MFU", "bubble", "memory", "$/Mtok"}, {}};
  const bool several = a.sites.size() > 1;
  const std::size_t digits = std::to_string(plans.size()).size();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const FoundPlan& p = plans[i];
    const std::string rank = std::to_string(i + 1);
    std::vector<std::string> row{
        sentence(std::string(digits - rank.size(), ' '), rank, ". ",
                 several ? a.sites[p.site].cluster.spoken + " " : std::string(), marked(a, p))};
    for (std::string& cell : cells_of(a, p)) row.push_back(std::move(cell));
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::string ranking_text(const PlanAnswer& a, std::optional<int> columns) {
  const Table t = plan_table(a, a.result.best);
  if (t.rows.empty() && a.result.proof.legal == 0 && a.request.asked.fix)
    return "  no plan with what is held fixed is legal; a note below says why\n";
  if (t.rows.empty())
    return a.result.proof.refused > 0
               ? "  no plan fits that the framework can be told; fit says what would make it fit\n"
               : "  no plan fits; fit says what would make it fit\n";
  const FoundPlan& best = a.result.best.front();
  return sentence("best by ", a.objective->name, " (", a.objective->summary, ")\n",
                  shown_table(t, "  ", columns),
                  "  80 % interval of the first one: ", shown_time(best.forecast.step_time.low),
                  " to ", shown_time(best.forecast.step_time.high), '\n');
}

std::string scaling_text(const PlanAnswer& a, std::optional<int> columns) {
  Table t{{"GPUs", "step", "tokens/s", "MFU", "bubble", "memory", "$/Mtok", "faster", "best plan"},
          {},
          {8}};
  for (const ScalingPoint& p : a.scaling) {
    std::vector<std::string> row{grouped(p.gpus)};
    if (!p.best) {
      row.emplace_back("does not fit");
      t.rows.push_back(std::move(row));
      continue;
    }
    for (std::string& cell : cells_of(a, *p.best)) row.push_back(std::move(cell));
    row.push_back(p.faster ? sentence(fixed(*p.faster, 2), " x") : std::string("-"));
    row.push_back(marked(a, *p.best));
    t.rows.push_back(std::move(row));
  }
  std::string text = sentence("the best plan on each size, by ", a.objective->name,
                              ", for the same batch\n", shown_table(t, "  ", columns));
  if (a.stops_paying)
    text += sentence("  doubling stops paying at ", grouped(*a.stops_paying),
                     *a.stops_paying == 1 ? " GPU" : " GPUs",
                     ": the next doubling makes a step less than ", fixed(doubling_pays, 1),
                     " times as fast, so a token costs a third more\n");
  return text;
}

std::string pareto_text(const PlanAnswer& a, std::optional<int> columns) {
  if (a.pareto.empty()) return "";
  return sentence("no other plan is at once as fast, as small (by steps of ",
                  fixed(gib(a.pareto_step), 1), " GiB) and as cheap as one of these ",
                  grouped(static_cast<std::int64_t>(a.pareto.size())),
                  "; forecast for it: ", grouped(a.pareto_proof.fitted), " for memory, ",
                  grouped(a.pareto_proof.timed), " for time\n",
                  shown_table(plan_table(a, a.pareto), "  ", columns));
}

// What bounds left out, and how much of it in whole sets. Where no plan fits, there was nothing to
// be better than: all of it was too large.
struct LeftOut {
  std::int64_t no_better = 0, no_better_in_sets = 0, too_large = 0, too_large_in_sets = 0;
};

LeftOut left_out(const PlanAnswer& a) {
  const SearchProof& p = a.result.proof;
  if (a.result.best.empty()) return {0, 0, p.in_sets + p.bounded + p.too_large, p.in_sets};
  return {p.in_sets + p.bounded, p.in_sets, p.too_large, 0};
}

std::string left_out_text(const PlanAnswer& a) {
  const LeftOut out = left_out(a);
  const auto sets = [](std::int64_t n) {
    return n > 0 ? sentence(" (", grouped(n), " in sets)") : std::string();
  };
  if (a.result.best.empty())
    return sentence(grouped(out.too_large), " too large", sets(out.too_large_in_sets));
  return sentence(grouped(out.no_better), " no better", sets(out.no_better_in_sets), ", ",
                  grouped(out.too_large), " too large");
}

// Of the product of all dimensions, beyond what fits the number: the most that does.
std::int64_t combinations(const SearchProof& p) {
  return static_cast<std::int64_t>(std::min(p.points, 9e18));
}

// Of less than a hundred thousand every one, which "0.1 M" would hide.
std::string shown_combinations(const SearchProof& p) {
  const std::int64_t n = combinations(p);
  return n < 100'000 ? grouped(n) : shown_parameters(n);
}

std::string proof_text(const PlanAnswer& a) {
  const SearchProof& p = a.result.proof;
  return sentence(
      "  of ", grouped(p.legal), " legal plans (", shown_combinations(p), " combinations), ",
      grouped(p.timed), " were forecast for time and ", grouped(p.fitted),
      " for memory; left out by proven bounds: ", left_out_text(a),
      p.refused > 0 ? sentence("; ", grouped(p.refused), " the framework cannot be told")
                    : std::string(),
      p.does_not_fit > 0 ? sentence("; ", grouped(p.does_not_fit), " forecast not to fit")
                         : std::string(),
      '\n');
}

Json found_json(const PlanAnswer& a, const FoundPlan& p) {
  const Forecast& f = p.forecast;
  const SearchSite& site = a.sites[p.site];
  Json j = {{"gpus", site.cluster.gpus()},
            {"cluster", site.cluster.spoken},
            {"plan", whole_text(p.plan)},
            {"settings", settings_json({site.space.workload(p.plan), p.plan, site.cluster})},
            {"verdict", verdict_name(f.verdict)},
            {"value", json_number(p.value)},
            {"step_time_s", step_time_json(f.step_time)},
            {"tokens_per_s", json_number(f.tokens_per_s)},
            {"mfu", json_number(f.mfu)},
            {"bubble_fraction", json_number(f.bubble_fraction)},
            {"peak_memory_gib", memory_json(f.worst().peak)},
            {"needed_memory_gib", json_gib(f.worst().needed)},
            {"peak_memory_high_gib", json_gib(f.peak_device.high)},
            {"capacity_gib", json_gib(f.worst().capacity)},
            {"margin_gib", json_gib(f.margin)},
            {"trust", trust_name(f.trust)}};
  add_host_ram(j, f.host);
  if (const auto why = beyond_usual(a, p)) j["beyond_framework"] = *why;
  if (const auto usd = usd_per_million_tokens(site, f))
    j["usd_per_million_tokens"] = json_number(*usd);
  return j;
}

// What every workload rests on that the search went through.
Json plan_echo(const PlanAnswer& a) {
  std::vector<Json> filled;
  for (const SearchSite& site : a.sites)
    for (const Workload* w : {&site.without_zero, &site.with_zero})
      filled.push_back(filled_json(a.request, *w));
  return echo_json(a.request.stated, filled);
}

Json scaling_json(const PlanAnswer& a) {
  Json list = Json::array();
  for (const ScalingPoint& p : a.scaling) {
    Json j = {{"gpus", p.gpus}, {"cluster", p.cluster}, {"fits", p.best.has_value()}};
    if (p.best) j["best"] = found_json(a, *p.best);
    if (p.best) j["launch_targets"] = p.starts.targets;
    if (p.faster) j["faster_than_half"] = json_number(*p.faster);
    list.push_back(std::move(j));
  }
  return list;
}

}  // namespace

std::string plan_text(const PlanAnswer& a, std::optional<int> columns) {
  std::string text = plan_head_line(a) + adapter_text(a.sites.back().without_zero);
  if (const PlanFix& fix = a.sites.back().space.fix(); !fix.empty())
    text += sentence("of plans with ", fix.shown(), " only\n");
  text += a.scaling.empty() ? ranking_text(a, columns) : scaling_text(a, columns);
  text += proof_text(a) + pareto_text(a, columns);
  for (const std::string& warning : a.warnings) text += sentence("  warning: ", warning, "\n");
  for (const std::string& note : a.notes) text += sentence("  note: ", note, "\n");
  return text;
}

Json plan_json(const PlanAnswer& a) {
  const SearchProof& p = a.result.proof;
  const LeftOut out = left_out(a);
  Json plans = Json::array();
  for (const FoundPlan& found : a.result.best) plans.push_back(found_json(a, found));
  Json j = {{"schema_version", schema_version},
            {"command", "plan"},
            {"request", plan_echo(a)},
            {"model", a.request.model.id},
            {"method", name(a.method)},
            {"framework", a.sites.back().without_zero.framework.id},
            {"objective", a.objective->name},
            {"objective_unit", a.objective->unit},
            {"plans", plans},
            {"combinations", combinations(p)},
            {"considered", p.legal},
            {"simulated", {{"time", p.timed}, {"memory", p.fitted}}},
            {"pruned",
             {{"no_better", out.no_better},
              {"no_better_in_sets", out.no_better_in_sets},
              {"too_large", out.too_large},
              {"too_large_in_sets", out.too_large_in_sets},
              {"refused_by_framework", p.refused},
              {"forecast_not_to_fit", p.does_not_fit}}}};
  for (const PlanFix::Key& key : a.sites.back().space.fix().keys())
    j["fixed"][key.name] = key.values;
  if (!a.pareto.empty()) {
    for (const FoundPlan& found : a.pareto) j["pareto"].push_back(found_json(a, found));
    j["pareto_step_gib"] = gib(a.pareto_step);
  }
  if (!a.scaling.empty()) j["scaling"] = scaling_json(a);
  if (a.stops_paying) j["doubling_stops_paying_at_gpus"] = *a.stops_paying;
  j["warnings"] = a.warnings;
  j["notes"] = a.notes;
  return j;
}

}  // namespace shardwise
