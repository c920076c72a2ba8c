#include "planner/report/explanation_report.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "planner/figures.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 5> bound_words{
    "arithmetic: matrix products and attention", "memory bandwidth of the GPU",
    "links: communication that nothing hides", "the pipeline's bubble", "the host"};

// Sums of seconds and GiB in their usual forms, counts in groups, the rest to four digits.
std::string shown_input(double value, const std::string& unit) {
  if (unit == "s") return shown_time(Seconds(value));
  if (unit == "GiB") return sentence(fixed(value, value < 10 ? 2 : 1), " GiB");
  if (unit == "parameters") return shown_parameters(static_cast<std::int64_t>(value));
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
  const std::string number =
      whole ? grouped(static_cast<std::int64_t>(value)) : fixed(value, value < 10 ? 3 : 1);
  return unit.empty() ? number : sentence(number, " ", unit);
}

std::string input_line(const ExplainedInput& i) {
  std::string line = sentence("        ", i.name);
  if (i.value != 0) line += sentence(" ", shown_input(i.value, i.unit));
  if (i.trust) line += sentence(", ", trust_name(*i.trust));
  if (!i.source.empty()) line += sentence(": ", i.source);
  return line + "\n";
}

double share_of_bound(const StepBound& b, BoundKind kind) {
  Seconds sum;
  for (const Seconds t : b.parts) sum += t;
  return sum > Seconds(0) ? b.part(kind) / sum : 0;
}

// The longest operators; what is left in one line.
std::string operator_table(const Explanation& e) {
  constexpr std::size_t most = 16;
  Table table{{"operator", "forward", "again", "backward", "runs"}, {}};
  Seconds rest;
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    const OperatorAccount& o = e.operators[i];
    if (i >= most) {
      rest += o.time();
      continue;
    }
    const auto time = [](Seconds t) { return t > Seconds(0) ? shown_time(t) : std::string("-"); };
    table.rows.push_back(
        {o.name, time(o.forward), time(o.recompute), time(o.backward), grouped(o.runs)});
  }
  std::string text = sentence("    kernels of a step by operator, stage ", e.stage,
                              ", alone on the GPU\n", shown_table(table, "      "));
  if (rest > Seconds(0))
    text += sentence("      and ", e.operators.size() - most, " more: ", shown_time(rest), "\n");
  return text;
}

std::string bound_line(const StepBound& b) {
  std::string text =
      sentence("    a step is bound by ", bound_words[static_cast<std::size_t>(b.kind)], ", ",
               fixed(100 * share_of_bound(b, b.kind), 0), " % of it (");
  for (std::size_t i = 0; i < bound_names.size(); ++i)
    text += sentence(i > 0 ? ", " : "", bound_names[i], " ",
                     fixed(100 * share_of_bound(b, static_cast<BoundKind>(i)), 0), " %");
  return text + ")\n";
}

}  // namespace

std::string explanation_text(const Explanation& e) {
  std::string text = "  why\n";
  if (share_of_bound(e.bound, e.bound.kind) > 0) text += bound_line(e.bound);
  text += operator_table(e);
  for (const ExplainedFigure& f : e.figures) {
    text += sentence("    ", f.key, " ", shown_input(f.value, f.unit), f.what.empty() ? "" : ": ",
                     f.what, "\n");
    if (!f.formula.empty()) text += sentence("      = ", f.formula, "\n");
    for (const ExplainedInput& i : f.inputs) text += input_line(i);
  }
  return text;
}

Json explanation_json(const Explanation& e) {
  Json parts = Json::object(), figures = Json::array(), operators = Json::array();
  for (std::size_t i = 0; i < bound_names.size(); ++i)
    parts[std::string(bound_names[i])] = json_number(e.bound.parts[i].value);
  for (const ExplainedFigure& f : e.figures) {
    Json inputs = Json::array();
    for (const ExplainedInput& i : f.inputs) {
      Json input = {{"name", i.name}, {"value", json_number(i.value)}, {"unit", i.unit}};
      if (i.trust) input["trust"] = trust_name(*i.trust);
      if (!i.source.empty()) input["source"] = i.source;
      inputs.push_back(input);
    }
    figures.push_back({{"key", f.key},
                       {"what", f.what},
                       {"value", json_number(f.value)},
                       {"unit", f.unit},
                       {"formula", f.formula},
                       {"inputs", inputs}});
  }
  for (const OperatorAccount& o : e.operators)
    operators.push_back({{"operator", o.name},
                         {"forward_s", json_number(o.forward.value)},
                         {"recompute_s", json_number(o.recompute.value)},
                         {"backward_s", json_number(o.backward.value)},
                         {"runs", o.runs}});
  return {{"bound",
           {{"by", name(e.bound.kind)},
            {"share", json_number(share_of_bound(e.bound, e.bound.kind))},
            {"parts_s", parts}}},
          {"stage", e.stage},
          {"operators", operators},
          {"figures", figures}};
}

}  // namespace shardwise
