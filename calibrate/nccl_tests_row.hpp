// NcclTestsRow: one line of results of nccl-tests, whichever version printed it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

struct NcclTestsTiming {
  double time_us = 0;
  double algbw = 0, busbw = 0;  // [GB/s]
};

struct NcclTestsRow {
  std::int64_t bytes = 0;
  std::string dtype;                     // "float", "bfloat16"
  std::string redop;                     // "sum", "none"; empty where there is no such column
  std::vector<NcclTestsTiming> timings;  // out-of-place, in-place: one or two
  std::string cut_off;                   // why the last columns are missing, if they are
  bool wrong = false;                    // values that arrived are not those that were sent
};

// Links that deliver other values than were sent are broken, and their rate says nothing.
inline constexpr std::string_view arrived_wrong =
    "values arrived wrong (#wrong): the rate of links that break what they carry is none";

enum class RowKind { no_row, row, broken };

struct NcclTestsLine {
  RowKind kind = RowKind::no_row;
  NcclTestsRow row;
  std::string why;  // of broken
};

// A row begins with two whole numbers and the name of a type, after any prefix.
NcclTestsLine read_nccl_tests_line(std::string_view line);

// size / time lies within what the rounding of both printed numbers allows.
bool agrees(std::int64_t bytes, const NcclTestsTiming& timing);

}  // namespace shardwise
