#include "calibrate/nccl_tests_row.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "calibrate/log_text.hpp"

namespace shardwise {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 19> type_names{
    "float",  "half",   "double",  "bfloat16", "int8",   "uint8",  "int32",
    "uint32", "int64",  "uint64",  "fp8_e4m3", "f8e4m3", "f8e5m2", "fp8_e5m2",
    "fp8",    "float8", "float16", "float32",  "bf16"};

bool is_type(std::string_view word) {
  return std::find(type_names.begin(), type_names.end(), word) != type_names.end();
}

// Where size, count and type stand, behind any prefix.
std::optional<std::size_t> row_start(Words line) {
  for (std::size_t i = 0; i + 2 < line.size(); ++i)
    if (whole_number_in(line[i]) && whole_number_in(line[i + 1]) && is_type(line[i + 2])) return i;
  return std::nullopt;
}

std::optional<NcclTestsTiming> timing_at(Words rest, std::size_t at, std::int64_t bytes) {
  if (at + 3 > rest.size()) return std::nullopt;
  const auto time = number_in(rest[at]);
  const auto algbw = number_in(rest[at + 1]), busbw = number_in(rest[at + 2]);
  if (!time || !algbw || !busbw) return std::nullopt;
  const NcclTestsTiming t{*time, *algbw, *busbw};
  if (t.time_us <= 0 || t.algbw < 0 || t.busbw < 0 || !agrees(bytes, t)) return std::nullopt;
  return t;
}

// The column behind a timing: how many values arrived wrong. Versions before 2.13 print the largest
// error there, which is no whole number unless it is none.
bool wrong_at(Words rest, std::size_t at) {
  return at < rest.size() && whole_number_in(rest[at]).value_or(0) > 0;
}

// The second timing follows the first, or a column of errors behind it.
void read_second(Words rest, std::size_t first_at, NcclTestsRow& row) {
  for (const std::size_t at : {first_at + 4, first_at + 3})
    if (const auto second = timing_at(rest, at, row.bytes)) {
      row.timings.push_back(*second);
      row.wrong = at == first_at + 4 && (wrong_at(rest, first_at + 3) || wrong_at(rest, at + 3));
      return;
    }
  const bool only_one = rest.size() <= first_at + 4;
  if (!only_one) row.cut_off = "the in-place columns are cut off";
}

}  // namespace

bool agrees(std::int64_t bytes, const NcclTestsTiming& t) {
  const double computed = static_cast<double>(bytes) / t.time_us * 1e-3;  // [GB/s]
  // Two decimals, fewer for large numbers; a time is printed with at least two digits.
  const double rounding = t.algbw < 100 ? 0.006 : t.algbw < 1000 ? 0.06 : 0.6;
  const double time_digits = t.time_us < 1 ? 0.3 : 0.03;
  return std::abs(computed - t.algbw) <= rounding + time_digits * computed;
}

NcclTestsLine read_nccl_tests_line(std::string_view line) {
  const std::vector<std::string_view> all = words(line);
  const auto start = row_start(all);
  if (!start) return {};
  NcclTestsLine read{RowKind::broken, {}, ""};
  NcclTestsRow& row = read.row;
  row.bytes = *whole_number_in(all[*start]);
  row.dtype = all[*start + 2];
  Words rest = Words(all).subspan(*start + 3);
  if (!rest.empty() && !number_in(rest.front())) {
    row.redop = rest.front();
    rest = rest.subspan(1);
  }
  if (row.bytes <= 0) {
    read.why = "nothing was sent";
    return read;
  }
  for (const std::size_t first_at : {std::size_t{0}, std::size_t{1}}) {  // 1: behind the root
    const auto first = timing_at(rest, first_at, row.bytes);
    if (!first) continue;
    row.timings.push_back(*first);
    read_second(rest, first_at, row);
    read.kind = RowKind::row;
    return read;
  }
  const bool root_first = !rest.empty() && whole_number_in(rest.front()).has_value();
  read.why = rest.size() < (root_first ? 4U : 3U) ? "the row is cut off before its bandwidth"
                                                  : "its time and its bandwidth do not agree";
  return read;
}

}  // namespace shardwise
