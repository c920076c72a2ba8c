// What a sweep came to: the ranking as text, everything as JSON (docs/schemas/sweep.schema.json),
// the rows as CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/report/json_parts.hpp"
#include "planner/sweep/sweep_ranking.hpp"
#include "planner/sweep/sweep_store.hpp"

namespace shardwise {

struct SweepReport {
  SweepHeader header;
  std::vector<SweepRow> rows;  // of the points that are finished, in their order
  const SweepMeasure* by = nullptr;
  int top = 10;  // rows of each group in the text
};

// `columns`: of a terminal; absent: lines may be of any length.
std::string sweep_text(const SweepReport& report, std::optional<int> columns = std::nullopt);
Json sweep_json(const SweepReport& report);
// RFC 4180, a line per row; absent values are empty.
std::string sweep_csv_head();
std::string sweep_csv_line(const SweepRow& row);

}  // namespace shardwise
