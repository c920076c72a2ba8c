// A sweep's row: one point's answer as plain values, column by column. The columns are at once
// those of the table `results` in the SQLite file, of the CSV and of the JSON: one list for all.
//
// Figures are rounded as every JSON answer rounds them (six digits, GiB to a thousandth), so that
// equal answers are equal bytes whatever compiler or machine worked them out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/request/request.hpp"
#include "planner/sweep/point_answer.hpp"

namespace shardwise {

using SweepValue = std::variant<std::monostate, std::int64_t, double, std::string>;
using SweepRow = std::vector<SweepValue>;  // one value per column of sweep_columns()

enum class SweepType { integer, real, text };

// What a point came to. `failed`: a bug of ours, told in `problem`.
inline constexpr std::string_view sweep_refused = "refused";
inline constexpr std::string_view sweep_failed = "failed";

struct PointSeen {
  std::int64_t point;
  const Request& asked;
  const PointAnswer& answer;
};

struct SweepColumn {
  std::string_view name;  // ends in its unit
  SweepType type;
  std::string_view what;
  SweepValue (*value)(const PointSeen&);
};

std::span<const SweepColumn> sweep_columns();
std::size_t sweep_column(std::string_view name);  // REQUIRES a column of that name

SweepRow sweep_row(const PointSeen& seen);
// Of a point whose answer threw: everything but the reason is absent.
SweepRow failed_row(std::int64_t point, const Request& asked, const std::string& reason);

// Of a row; nothing where the value is absent. REQUIRES a column of that name.
std::optional<std::string> text_in(const SweepRow& row, std::string_view column);
std::optional<double> number_in(const SweepRow& row, std::string_view column);

// A row as bytes and back, to hand it to another process of the same program.
std::string packed(const SweepRow& row);
SweepRow unpacked(std::string_view bytes);  // REQUIRES what packed() gave

}  // namespace shardwise
