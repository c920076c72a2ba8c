#include "planner/sweep/sweep_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "catalog/json_document.hpp"
#include "planner/figures.hpp"
#include "planner/report/bar.hpp"
#include "planner/report/output.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"
#include "planner/sweep/study.hpp"

namespace shardwise {
namespace {

constexpr int bar_width = 20;
constexpr std::size_t most_reasons = 8;

// The keys that differ from point to point, in the order of a request, without those that tell the
// groups apart and the plan, which every line has.
std::vector<std::string> varying_keys(const SweepHeader& header) {
  const auto study = read_study_text(header.text, "study");
  if (!study) return {};
  std::set<std::string_view> found;
  for (const StudyAxis& axis : study->axes)
    if (axis.values.size() > 1) found.insert(axis.field->key);
  if (study->cases.size() > 1)
    for (const auto& one : study->cases)
      for (const StudyValue& v : one) found.insert(v.field->key);
  std::vector<std::string> keys;
  for (const RequestField& field : request_fields())
    if (found.count(field.key)) keys.emplace_back(field.key);
  return keys;
}

bool heads_the_group(const std::string& key) {
  return key == "model" || key == "method" || key == "sequence" || key == "plans";
}

std::string shown_value(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string all;
  for (const Json& v : value) all += (all.empty() ? "" : ", ") + shown_value(v);
  return all;
}

std::string shown_value(const SweepRow& row, std::string_view column, std::string (*show)(double)) {
  const auto value = number_in(row, column);
  return value ? show(*value) : std::string("-");
}

std::string shown_seconds(double s) { return shown_time(Seconds(s)); }
std::string shown_tenths(double x) { return fixed(x, 1); }
std::string shown_figure(double x) { return std::abs(x) < 100 ? fixed(x, 3) : shown_rate(x); }

std::int64_t point_of(const SweepRow& row) { return std::get<std::int64_t>(row.front()); }

struct Figure {
  const char* heading;
  std::string_view column;
  std::string (*show)(double);
};
constexpr std::array<Figure, 6> figures{{{"step", "step_time_s", shown_seconds},
                                         {"tokens/s", "tokens_per_s", shown_rate},
                                         {"MFU", "mfu", shown_share},
                                         {"GiB", "peak_memory_gib", shown_tenths},
                                         {"GiB free", "margin_gib", shown_tenths},
                                         {"$/Mtok", "usd_per_million_tokens", shown_figure}}};

// What the rows are ranked by comes last, with its bar.
std::string bar_cell(const SweepRow& row, const SweepMeasure& by, double most) {
  const double value = number_in(row, by.column).value_or(0);
  std::string bar = shown_bar(most > 0 ? std::abs(value) / most : 0, bar_width);
  bar.resize(bar_width, ' ');  // so that bars begin below one another
  return sentence(shown_figure(value), "  ", bar);
}

Table group_table(const SweepReport& r, const SweepGroup& group,
                  const std::vector<std::string>& keys) {
  Table t{{"plan", "point"}, {}};
  t.header.insert(t.header.end(), keys.begin(), keys.end());
  for (const Figure& f : figures)
    if (f.column != r.by->column) t.header.emplace_back(f.heading);
  t.header.push_back(sentence(r.by->heading, std::string(bar_width + 2, ' ')));
  double most = 0;
  for (const std::size_t i : group.ranked)
    most = std::max(most, std::abs(number_in(r.rows[i], r.by->column).value_or(0)));
  for (std::size_t i = 0; i < group.ranked.size() && i < static_cast<std::size_t>(r.top); ++i) {
    const SweepRow& row = r.rows[group.ranked[i]];
    const Json request = Json::parse(text_in(row, "request").value_or("{}"));
    const bool tight = text_in(row, "verdict") == verdict_name(Verdict::tight);
    std::vector<std::string> cells{
        sentence(i + 1, ". ", text_in(row, "plan").value_or("-"), tight ? " (tight)" : ""),
        std::to_string(point_of(row))};
    for (const std::string& key : keys) cells.push_back(shown_value(request.value(key, Json())));
    for (const Figure& f : figures)
      if (f.column != r.by->column) cells.push_back(shown_value(row, f.column, f.show));
    cells.push_back(bar_cell(row, *r.by, most));
    t.rows.push_back(std::move(cells));
  }
  return t;
}

std::string without_trailing_spaces(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    if (c == '\n') kept.erase(kept.find_last_not_of(' ') + 1);
    kept += c;
  }
  return kept;
}

std::string more_line(const SweepReport& r, const SweepGroup& group) {
  std::string text;
  const auto top = static_cast<std::size_t>(r.top);
  if (group.ranked.size() > top)
    text += sentence("  ", group.ranked.size() - top, " more ",
                     group.ranked.size() - top == 1 ? "runs, and ranks" : "run, and rank",
                     " below these\n");
  if (!group.unmeasured.empty())
    text += sentence("  ", group.unmeasured.size(), " more ",
                     group.unmeasured.size() == 1 ? "runs" : "run", ", without a figure for \"",
                     r.by->heading, "\"\n");
  if (group.do_not_fit.empty()) return text;
  const SweepRow& nearest = r.rows[group.do_not_fit.front()];
  return text + sentence("  ", group.do_not_fit.size(),
                         group.do_not_fit.size() == 1 ? " does" : " do", " not fit; point ",
                         point_of(nearest), " on ", text_in(nearest, "gpus").value_or("-"),
                         " is the least short, by ",
                         fixed(-number_in(nearest, "margin_gib").value_or(0), 1), " GiB\n");
}

std::string refused_text(const SweepReport& r, const SweepRanking& ranking) {
  if (ranking.refused.empty()) return "";
  std::string text = "no answer\n";
  std::size_t told = 0;
  for (const auto& [reason, at] : ranking.refused) {
    if (++told > most_reasons)
      return text + sentence("  and ", ranking.refused.size() - most_reasons, " more reasons\n");
    text += sentence("  ", counted(static_cast<std::int64_t>(at.size()), "point"), ", such as ",
                     point_of(r.rows[at.front()]), ": ", reason, "\n");
  }
  return text;
}

std::string counts_text(const SweepReport& r, const SweepRanking& ranking) {
  std::string text;
  for (const auto& [verdict, count] : ranking.counts)
    text += sentence(text.empty() ? "" : ", ", count, ' ', verdict);
  return sentence(r.header.name.empty() ? "sweep" : printable(r.header.name), ": ",
                  grouped(static_cast<std::int64_t>(r.rows.size())), " of ",
                  counted(r.header.points, "point"), " finished", text.empty() ? "" : ": ", text,
                  "\n");
}

Json value_json(const SweepValue& value) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(std::int64_t v) const { return v; }
    Json operator()(double v) const { return v; }
    Json operator()(const std::string& v) const { return v; }
  };
  return std::visit(Visitor{}, value);
}

Json row_json(const SweepRow& row) {
  Json j = Json::object();
  const auto columns = sweep_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Json value = value_json(row[i]);
    if (value.is_null()) continue;
    const std::string name(columns[i].name);
    j[name] = name == "request" ? Json::parse(value.get<std::string>()) : std::move(value);
  }
  return j;
}

Json points_json(const std::vector<SweepRow>& rows, const std::vector<std::size_t>& at) {
  Json points = Json::array();
  for (const std::size_t i : at) points.push_back(value_json(rows[i].front()));
  return points;
}

std::string csv_cell(const SweepValue& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) return std::to_string(*n);
  if (const auto* x = std::get_if<double>(&value)) return shown_number(*x);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return "";
  if (text->find_first_of(",\"\r\n") == std::string::npos) return *text;
  std::string quoted = "\"";
  for (const char c : *text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string sweep_text(const SweepReport& r, std::optional<int> columns) {
  const SweepRanking ranking = rank_sweep(r.rows, *r.by);
  std::vector<std::string> keys = varying_keys(r.header);
  keys.erase(std::remove_if(keys.begin(), keys.end(), heads_the_group), keys.end());
  std::string text = counts_text(r, ranking);
  for (const SweepGroup& group : ranking.groups) {
    text += sentence("\n", group.model, ", ", group.method, ", ", grouped(group.sequence),
                     " tokens per sequence, by ", r.by->heading, "\n");
    if (!group.ranked.empty())
      text += without_trailing_spaces(shown_table(group_table(r, group, keys), "  ", columns));
    text += more_line(r, group);
  }
  return text + (ranking.refused.empty() ? "" : "\n") + refused_text(r, ranking);
}

Json sweep_json(const SweepReport& r) {
  const SweepRanking ranking = rank_sweep(r.rows, *r.by);
  Json groups = Json::array(), rows = Json::array();
  for (const SweepGroup& g : ranking.groups)
    groups.push_back({{"model", g.model},
                      {"method", g.method},
                      {"sequence", g.sequence},
                      {"ranked", points_json(r.rows, g.ranked)},
                      {"unmeasured", points_json(r.rows, g.unmeasured)},
                      {"do_not_fit", points_json(r.rows, g.do_not_fit)}});
  for (const SweepRow& row : r.rows) rows.push_back(row_json(row));
  return {{"schema_version", schema_version},
          {"command", "sweep"},
          {"study",
           {{"name", r.header.name},
            {"fingerprint", r.header.study},
            {"points", r.header.points},
            {"varies", varying_keys(r.header)}}},
          {"finished", r.rows.size()},
          {"verdicts", ranking.counts},
          {"ranked_by", r.by->column},
          {"more_is_better", r.by->more_is_better},
          {"ranking", groups},
          {"rows", rows}};
}

std::string sweep_csv_head() {
  std::string text;
  for (const SweepColumn& c : sweep_columns()) text += sentence(text.empty() ? "" : ",", c.name);
  return text + '\n';
}

std::string sweep_csv_line(const SweepRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i)
    text += sentence(csv_cell(row[i]), i + 1 == row.size() ? '\n' : ',');
  return text;
}

}  // namespace shardwise
