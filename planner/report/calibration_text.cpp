#include "planner/report/calibration_text.hpp"

#include <algorithm>
#include <map>

#include "calibrate/imported_log.hpp"
#include "calibrate/median.hpp"
#include "calibrate/size_fit.hpp"
#include "catalog/collective.hpp"
#include "planner/figures.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_unread_shown = 12;

// What a measurement is of, without its sizes: "all_reduce", "copy host_to_device", "gemm bf16".
std::string subject(const Measurement& m) {
  if (m.bench == "collective") return label(m, "collective");
  std::string text = m.bench;
  for (const std::string key : {"direction", "class", "kind", "dtype"})
    if (const std::string value = label(m, key); !value.empty()) text += " " + value;
  return text;
}

std::string subjects_text(const ImportedLog& log) {
  std::map<std::string, std::int64_t> counts;
  for (const Measurement& m : log.measurements) ++counts[subject(m)];
  std::string text;
  for (const auto& [name, n] : counts)
    text += sentence("  ", name, ": ", counted(n, "point"), "\n");
  return text;
}

std::string unread_text(const ImportedLog& log) {
  std::string text;
  for (std::size_t i = 0; i < log.unread.size(); ++i) {
    if (i == most_unread_shown) {
      text += sentence("    and ", log.unread.size() - i, " more (all with --json)\n");
      break;
    }
    const UnreadLine& u = log.unread[i];
    text += "    ";
    if (u.line > 0) text += sentence("line ", u.line, ": ");
    text += u.why;
    if (!u.text.empty()) text += ": " + u.text;
    text += "\n";
  }
  return text;
}

std::string shown_bandwidth(BytesPerSecond rate) { return fixed(rate.value / 1e9, 2) + " GB/s"; }

std::string regime_text(const Sweep& sweep, const Regime& r) {
  std::string text = sentence("    ", shown_bytes(r.from), " to ", shown_bytes(r.to), ": ");
  text += r.points == 1 && r.seconds_per_byte <= 0 ? shown_time(r.alpha)
                                                   : "alpha " + shown_time(r.alpha);
  if (const auto rate = r.bandwidth()) {
    text += ", beta " + shown_bandwidth(*rate);
    const auto ranks = sweep.sizes.find("ranks");
    const auto collective = sweep.labels.find("collective");
    if (ranks != sweep.sizes.end() && ranks->second > 1 && collective != sweep.labels.end())
      text +=
          " (bus " + shown_bandwidth(bus_factor(collective->second, ranks->second) * *rate) + ")";
  }
  return text + "\n";
}

}  // namespace

std::string shown_bytes(Bytes bytes) {
  const auto value = static_cast<double>(bytes.value);
  constexpr double kib = 1024;
  const std::string_view names[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  double scaled = value;
  while (scaled >= kib && unit < 3) {
    scaled /= kib;
    ++unit;
  }
  const bool whole = scaled == static_cast<double>(static_cast<std::int64_t>(scaled));
  return sentence(fixed(scaled, whole ? 0 : 1), " ", names[unit]);
}

std::string import_text(const ImportedLog& log) {
  std::string text = sentence(log.file, ": ");
  if (log.format.empty())
    text += "not understood\n";
  else
    text += sentence(log.format, ", ",
                     counted(static_cast<std::int64_t>(log.measurements.size()), "measurement"),
                     " in ", counted(log.lines, "line"), "\n");
  std::string facts;
  for (const auto& [key, value] : log.facts)
    if (!value.empty()) facts += sentence(facts.empty() ? "" : ", ", key, " ", value);
  if (!facts.empty()) text += sentence("  ", facts, "\n");
  text += subjects_text(log);
  if (!log.unread.empty()) text += "  not understood:\n" + unread_text(log);
  return text;
}

std::string sweep_text(const Sweep& sweep, const SizeFit& fit) {
  std::string text = sentence("  ", sweep.name(), "\n");
  for (const Regime& r : fit.regimes) text += regime_text(sweep, r);
  Table table{{"size", "measured", "fitted", "off"}, {}};
  for (const SweepPoint& p : sweep.points) {
    const Seconds fitted = fit.time(p.bytes);
    table.rows.push_back({shown_bytes(p.bytes), shown_time(p.time), shown_time(fitted),
                          shown_percent(fitted / p.time - 1)});
  }
  text += shown_table(table, "      ");
  return text + sentence("    80 % of the points lie between ", shown_percent(fit.low - 1), " and ",
                         shown_percent(fit.high - 1), "; below ",
                         shown_bytes(fit.regimes.front().from), " and above ",
                         shown_bytes(fit.regimes.back().to), " the fit extrapolates\n");
}

std::string left_out_text(const std::vector<Sweep>& sweeps) {
  Table table{{"sweep", "sizes", "median", "worst"}, {}};
  std::vector<double> all;
  int too_short = 0;
  for (const Sweep& sweep : sweeps) {
    std::vector<double> errors;
    for (const LeftOut& left : leave_one_size_out(sweep)) errors.push_back(left.error());
    all.insert(all.end(), errors.begin(), errors.end());
    if (errors.empty())
      ++too_short;
    else
      table.rows.push_back({sweep.name(), std::to_string(errors.size()),
                            fixed(100 * median(errors), 1) + " %",
                            fixed(100 * quantile(errors, 1), 1) + " %"});
  }
  std::string text = "Leave one size out: error of the fit at the size it did not see\n";
  if (!table.rows.empty()) text += shown_table(table);
  if (!all.empty())
    text += sentence("  all ", all.size(), " sizes: median ", fixed(100 * median(all), 1),
                     " %, 90th of 100 ", fixed(100 * quantile(all, 0.9), 1), " %\n");
  if (too_short > 0)
    text += sentence("  ", counted(too_short, "sweep"),
                     " of fewer than three sizes: nothing to leave out\n");
  return text;
}

}  // namespace shardwise
