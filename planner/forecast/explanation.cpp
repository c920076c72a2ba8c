#include "planner/forecast/explanation.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "catalog/framework_names.hpp"
#include "catalog/names.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/explanation_parts.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string row_words(const SpreadRow& row) {
  std::vector<std::string> parts;
  if (row.extent) parts.emplace_back(spelling(extent_names, *row.extent));
  if (row.tensor) parts.emplace_back(*row.tensor ? "tensor parallel" : "no tensor parallelism");
  if (row.stages) parts.emplace_back(*row.stages ? "pipeline" : "no pipeline");
  if (row.tuning) parts.emplace_back(spelling(tuning_names, *row.tuning));
  for (std::string& part : parts) std::replace(part.begin(), part.end(), '_', ' ');
  if (row.framework) parts.push_back(*row.framework + " and what is built on it");
  return parts.empty() ? "any run" : joined(parts);
}

}  // namespace

ExplainedInput catalogued(std::string name, double value, std::string unit, Trust trust,
                          const Provenance& provenance, std::string_view field) {
  std::string source = provenance.source;
  for (const FieldSource& f : provenance.fields)
    if (f.field == field) source = f.source;
  // Entries of frameworks: "... where field_sources names a file; every other field is assumed".
  if (source.starts_with("assumed") || source.find("other field is assumed") != std::string::npos)
    trust = Trust::assumed;
  if (!provenance.date.empty() && provenance.date != "unknown")
    source += sentence(" (", provenance.date, ")");
  return {std::move(name), value, std::move(unit), trust, std::move(source)};
}

std::vector<ExplainedInput> interval_inputs(const SpreadRow& row, const Provenance& provenance) {
  const std::string source =
      row.runs > 0
          ? sentence("measured / forecast of ", row.runs, " published runs of ", row.sources,
                     " sources of this kind (", row_words(row), "); ", provenance.source)
          : std::string("no published runs of this kind: half to twice");
  const Trust trust = row.runs > 0 ? Trust::published : Trust::assumed;
  // The interval holds the forecast itself where nine in ten runs took more than it said.
  const auto held = [&](double quantile, double end) {
    return quantile == end
               ? source
               : sentence(shown_rate(quantile), " times, held to the forecast: ", source);
  };
  const double low = std::min(1.0, row.low), high = std::max(1.0, row.high);
  return {{"low", low, "times", trust, held(row.low, low)},
          {"high", high, "times", trust, held(row.high, high)}};
}

Explanation explain(const Question& question, const Forecast& forecast, const Profile& profile) {
  Explanation e;
  explain_memory(question, forecast, profile, e.figures);
  if (forecast.tokens_per_s > 0)  // else memory alone was forecast
    explain_time(question, forecast, profile, e.figures);
  e.bound = step_bound(question, forecast, profile);
  e.stage = forecast.breakdown.stage;
  e.operators = operator_accounts(question, profile, e.stage);
  return e;
}

}  // namespace shardwise
