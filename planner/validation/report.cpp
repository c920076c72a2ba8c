#include "planner/validation/report.hpp"

#include <algorithm>

#include "planner/figures.hpp"

namespace shardwise {
namespace {

std::string columns(const ErrorStatistics& e) {
  std::string out = padded(std::to_string(e.count), 7);
  const bool any = e.count > 0;
  for (const double figure : {e.bias, e.median, e.p90})
    out += padded(any ? share_number(figure) : "-", 8);
  return out;
}

std::string table_row(const std::string& label, const ErrorStatistics& time,
                      const ErrorStatistics& memory, std::size_t width) {
  return left(label, width) + columns(time) + "  |" + columns(memory) + "\n";
}

std::string table(const ValidationScore& s, std::string_view by) {
  std::size_t width = std::max<std::size_t>(by.size(), 12);
  for (const ScoreRow& row : s.rows) width = std::max(width, row.key.name.size());
  std::string out = left(std::string(by), width) + padded("time n", 7) + padded("bias %", 8) +
                    padded("median", 8) + padded("p90", 8) + "  |" + padded("mem n", 7) +
                    padded("bias %", 8) + padded("median", 8) + padded("p90", 8) + "\n";
  for (const ScoreRow& row : s.rows) out += table_row(row.key.name, row.time, row.memory, width);
  return out + table_row("all runs", s.time, s.memory, width);
}

std::string error_line(const char* what, const ErrorStatistics& e, const OverSources& o,
                       double covered, const SpreadCoverage& refit) {
  std::string out = what;
  if (e.count == 0) return out + "nothing to compare\n";
  if (o.sources > 0)
    out += "median over " + std::to_string(o.sources) +
           (o.sources == 1 ? " source " : " sources ") + share_number(o.median) + " %, worst " +
           share_number(o.worst) + " %; ";
  out += "all " + grouped(e.count) + " runs: median " + share_number(e.median) + " %, mean " +
         share_number(e.mean) + " %, p90 " + share_number(e.p90) + " %; " + share_number(covered) +
         " % within low and high (" + share_number(refit.left_out) +
         " % where the interval comes from the other sources alone)\n";
  return out;
}

std::string outcome_lines(const OutcomeScore& o) {
  std::string out = "out of memory   " + std::to_string(o.false_fits) + " false fits of " +
                    std::to_string(o.oom) + " runs that ran out; " +
                    std::to_string(o.false_refusals) + " false refusals of " + grouped(o.ran) +
                    " that ran\n";
  if (o.crashed > 0)
    out += "                " + grouped(o.confirmed) + " of " + grouped(o.crashed) +
           " runs that crashed or ran out are forecast to run out (no proof either way)\n";
  return out;
}

std::string ranking_line(std::string_view head, const RankingScore& r, std::string_view groups) {
  if (r.groups == 0) return "";
  std::string out = std::string(head) + std::to_string(r.groups) + std::string(groups) +
                    ": regret median " + share_number(r.regret_median) + " %, mean " +
                    share_number(r.regret_mean) + " %";
  if (r.tau) out += ", Kendall's tau " + fixed(*r.tau, 2);
  return out + "\n";
}

std::string ranking_lines(const ValidationScore& s) {
  return ranking_line("ranking         ", s.ranking, " groups of one model, machine and batch") +
         ranking_line("plan ranking    ", s.plan_ranking,
                      " groups that differ in nothing but the plan, each plan once");
}

std::string skip_lines(const ValidationScore& s) {
  std::string out;
  for (const auto& [reason, count] : s.skipped)
    out += "                " + padded(std::to_string(count), 5) + "  " + reason + "\n";
  return out;
}

}  // namespace

std::string validation_report(const ValidationScore& s, std::string_view by) {
  const double answered = s.records == 0 ? 0 : static_cast<double>(s.answered) / s.records;
  std::string out = table(s, by) + "\n";
  out += "answered        " + grouped(s.answered) + " of " + grouped(s.records) + " records (" +
         share_number(answered) + " %)\n" + skip_lines(s);
  out += error_line("step time       ", s.time, s.time_over_sources, s.time_coverage, s.time_refit);
  out += error_line("peak memory     ", s.memory, s.memory_over_sources, s.memory_coverage,
                    s.memory_refit);
  return out + outcome_lines(s.outcome) + ranking_lines(s);
}

std::string ranking_report(const ValidationScore& s) {
  std::size_t source = 6, model = 5, gpus = 4;
  for (const RankedGroup& g : s.ranking.each) {
    source = std::max(source, g.source.size());
    model = std::max(model, g.model.size());
    gpus = std::max(gpus, g.gpus.size());
  }
  const auto row = [&](const std::string& a, const std::string& b, const std::string& c) {
    return left(a, source + 2) + left(b, model + 2) + left(c, gpus);
  };
  std::string out = row("source", "model", "gpus") + "    runs  regret %     tau\n";
  for (const RankedGroup& g : s.ranking.each)
    out += row(g.source, g.model, g.gpus) + padded(std::to_string(g.runs), 8) +
           padded(share_number(g.regret), 10) + padded(g.tau ? fixed(*g.tau, 2) : "-", 8) + "\n";
  if (s.ranking.groups == 0) return "no group of four runs or more differs in plan only\n";
  return out + "\n" + ranking_lines(s);
}

std::string validation_notes(const std::vector<ReplayedRun>& runs) {
  std::string out;
  for (const ReplayedRun& r : runs) {
    if (r.skipped) {
      out += r.run->id + ": skipped: " + r.skipped->reason;
      if (!r.skipped->detail.empty()) out += " (" + r.skipped->detail + ")";
      out += "\n";
    }
    for (const std::string& note : r.notes) out += r.run->id + ": " + note + "\n";
  }
  return out;
}

}  // namespace shardwise
