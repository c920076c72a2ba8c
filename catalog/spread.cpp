#include "catalog/spread.hpp"

#include <algorithm>

#include "catalog/json_document.hpp"
#include "catalog/json_reader.hpp"

namespace shardwise {
namespace {

SpreadRow spread_row(JsonReader& r) {
  SpreadRow row;
  row.extent = r.maybe_choice("extent", extent_names);
  row.tensor = r.maybe_flag("tensor");
  row.tuning = r.maybe_choice("tuning", tuning_names);
  row.stages = r.maybe_flag("stages");
  row.framework = r.maybe_text("framework");
  row.low = r.number("low", 1e-3, 1e3);
  row.high = r.number("high", 1e-3, 1e3);
  if (row.high < row.low) r.problem("high", "a number no less than low");
  row.runs = r.integer("runs", 1, 1'000'000'000);
  row.sources = r.integer("sources", 1, 1'000'000'000);
  r.finish();
  return row;
}

std::vector<SpreadRow> spread_rows(JsonReader& r, std::string_view key) {
  std::vector<SpreadRow> rows;
  for (JsonReader& row : r.objects(key)) rows.push_back(spread_row(row));
  if (rows.empty()) r.problem(key, "at least one row");
  return rows;
}

}  // namespace

bool SpreadRow::holds(const SpreadKey& key) const {
  return extent.value_or(key.extent) == key.extent && tensor.value_or(key.tensor) == key.tensor &&
         tuning.value_or(key.tuning) == key.tuning && stages.value_or(key.stages) == key.stages &&
         (!framework || *framework == key.framework);
}

SpreadRow spread_of(const std::vector<SpreadRow>& rows, const SpreadKey& key) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const SpreadRow& r) { return r.holds(key); });
  return row == rows.end() ? SpreadRow{} : *row;
}

Result<Spread> load_spread(const std::string& path) {
  const Result<JsonDocument> document = parse_json_file(path, path);
  if (!document) return document.error();
  Problems problems;
  JsonReader r(*document, problems);
  Spread spread;
  spread.provenance = r.provenance();
  spread.step_time = spread_rows(r, "step_time");
  spread.memory = spread_rows(r, "memory");
  r.finish();
  if (!problems.empty()) return problems;
  return spread;
}

}  // namespace shardwise
