#include "calibrate/import_gemm_table.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "calibrate/log_text.hpp"

namespace shardwise {
namespace {

struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
};

constexpr double largest_size = 1e9;  // of m, n or k: no GPU holds such an operand

// The columns of a table whose header was seen.
struct Columns {
  std::vector<std::string> names;  // lower case; empty: no header yet
  bool commas = false;
  std::optional<std::size_t> find(std::string_view name) const {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return std::nullopt;
    return static_cast<std::size_t>(at - names.begin());
  }
};

struct Reading {
  std::string dtype;
  std::string section;  // statistic that a heading gave to the rows below it
  Columns columns;
};

constexpr std::array<std::string_view, 7> rate_columns{"tflops", "tflop/s", "tflops/s", "mean",
                                                       "median", "max",     "peak"};

// "4096x9216x1024"
std::optional<Shape> shape_of(std::string_view word) {
  const std::size_t first = word.find('x');
  const std::size_t second = first == word.npos ? first : word.find('x', first + 1);
  if (second == word.npos) return std::nullopt;
  const auto m = whole_number_in(word.substr(0, first));
  const auto n = whole_number_in(word.substr(first + 1, second - first - 1));
  const auto k = whole_number_in(word.substr(second + 1));
  if (!m || !n || !k || *m < 1 || *n < 1 || *k < 1) return std::nullopt;
  return Shape{*m, *n, *k};
}

std::vector<std::string_view> cells(std::string_view line, bool commas) {
  if (!commas) return words(line);
  std::vector<std::string_view> found;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    found.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return found;
}

void add(const Shape& shape, double tflops, std::string statistic, const Reading& reading, int line,
         ImportedLog& log) {
  Measurement m;
  m.bench = "gemm";
  m.sizes = {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}};
  m.labels = {{"statistic", std::move(statistic)}};
  if (!reading.dtype.empty()) m.labels["dtype"] = reading.dtype;
  if (log.facts.count("device")) m.labels["device"] = log.facts["device"];
  m.quantity = "flops_per_s";
  m.value = tflops * 1e12;
  m.samples = 1;
  m.source = at_line(log, line);
  log.measurements.push_back(std::move(m));
}

// "25.6(mean)   25.6(median)   25.8(max) @ 13312x15360x6144"
bool read_progress(const LogLine& line, const Reading& reading, ImportedLog& log) {
  const std::string_view text(line.text);
  const std::size_t at = text.find(" @ ");
  if (at == text.npos || text.find("(mean)") > at) return false;
  const auto shape_words = words(text.substr(at + 3));
  const auto shape = shape_words.empty() ? std::nullopt : shape_of(shape_words.front());
  if (!shape) return false;
  for (const std::string_view statistic : {"mean", "median", "max"}) {
    const std::string mark = "(" + std::string(statistic) + ")";
    const std::size_t end = text.substr(0, at).find(mark);
    if (end == text.npos) continue;
    const auto before = words(text.substr(0, end));
    const double rate = before.empty() ? 0 : number_in(before.back()).value_or(0);
    if (rate > 0) add(*shape, rate, std::string(statistic), reading, line.number, log);
  }
  return true;
}

std::string statistic_named(std::string_view text) {
  const std::string low = lowered(text);
  for (const auto& [word, statistic] :
       {std::pair{"mamf (", "burst"}, std::pair{"msmf (", "sustained"},
        std::pair{"median", "median"}, std::pair{"mean", "mean"}, std::pair{"max", "max"},
        std::pair{"best", "max"}})
    if (low.find(word) != low.npos) return statistic;
  return "mean";
}

// "mean:   35.1 TFLOPS @ 15360x3072x1024 (MxNxK)", "The best outcome was 71.8TFLOPS @ ..."
bool read_summary(const LogLine& line, const Reading& reading, ImportedLog& log) {
  const std::string low = lowered(line.text);
  const std::size_t unit = low.find("tflops @ ");
  if (unit == low.npos) return false;
  const auto before = words(std::string_view(low).substr(0, unit));
  const auto behind = words(std::string_view(low).substr(unit + 9));
  const double rate = before.empty() ? 0 : number_in(before.back()).value_or(0);
  const auto shape = behind.empty() ? std::nullopt : shape_of(behind.front());
  if (!shape || rate <= 0) return false;
  add(*shape, rate, statistic_named(low), reading, line.number, log);
  return true;
}

std::optional<double> valued(std::string_view text, std::string_view key) {
  const auto rest = after(text, key);
  if (!rest) return std::nullopt;
  return number_in(rest->substr(0, rest->find_first_of(",}")));
}

// "... {'TFLOPS': 291.58} and parameters: {'M': 6912, 'N': 16384, 'K': 2048}"
bool read_trial(const LogLine& line, const Reading& reading, ImportedLog& log) {
  const auto rate = valued(line.text, "'TFLOPS':");
  const auto m = valued(line.text, "'M':"), n = valued(line.text, "'N':"),
             k = valued(line.text, "'K':");
  if (!rate || !m || !n || !k || *rate <= 0) return false;
  for (const double size : {*m, *n, *k})
    if (!(size >= 1 && size <= largest_size)) return false;
  add({static_cast<std::int64_t>(*m), static_cast<std::int64_t>(*n), static_cast<std::int64_t>(*k)},
      *rate, "mean", reading, line.number, log);
  return true;
}

// A line that names a shape, or m, n and k, and a rate or a time.
bool read_columns(std::string_view text, Reading& reading) {
  const std::string low = lowered(text);
  Columns found;
  found.commas = low.find(',') != low.npos;
  for (const std::string_view cell : cells(low, found.commas))
    found.names.emplace_back(cell == "shape" ? "mxnxk" : cell);
  const bool shape = found.find("mxnxk") || (found.find("m") && found.find("n") && found.find("k"));
  const auto measured = [&](const std::string& name) {
    return std::find(rate_columns.begin(), rate_columns.end(), name) != rate_columns.end() ||
           name == "time_us" || name == "time_ms";
  };
  if (!shape || std::none_of(found.names.begin(), found.names.end(), measured)) return false;
  reading.columns = std::move(found);
  return true;
}

std::optional<Shape> shape_in(const std::vector<std::string_view>& row, const Columns& columns) {
  if (const auto at = columns.find("mxnxk"))
    return *at < row.size() ? shape_of(row[*at]) : std::nullopt;
  Shape s;
  for (const auto& [name, to] :
       {std::pair{"m", &s.m}, std::pair{"n", &s.n}, std::pair{"k", &s.k}}) {
    const auto at = columns.find(name);
    const auto value = at && *at < row.size() ? whole_number_in(row[*at]) : std::nullopt;
    if (!value || *value < 1) return std::nullopt;
    *to = *value;
  }
  return s;
}

// A line with a cell for every column and a number where a size is expected: a result, though no
// shape can be read from it.
bool stands_in_columns(const std::vector<std::string_view>& row, const Columns& columns) {
  if (row.size() != columns.names.size()) return false;
  for (const std::string_view name : {"m", "n", "k"})
    if (const auto at = columns.find(name); at && number_in(row[*at])) return true;
  return false;
}

// The statistic of a column of rates: the heading above it speaks for "tflops" and "peak".
std::string statistic_of(const std::string& column, const std::string& section) {
  if (column == "mean" || column == "median" || column == "max") return column;
  if (!section.empty()) return section;
  return column == "peak" ? "max" : "mean";
}

bool read_table_row(const LogLine& line, Reading& reading, ImportedLog& log) {
  const Columns& columns = reading.columns;
  if (columns.names.empty()) return false;
  const auto row = cells(line.text, columns.commas);
  const auto shape = shape_in(row, columns);
  if (!shape) {
    if (!stands_in_columns(row, columns)) return false;
    leave_unread(log, line.number, line.text, "its m, n and k are not whole numbers from 1");
    return true;
  }
  if (const auto at = columns.find("dtype"); at && *at < row.size())
    reading.dtype = gemm_dtype(row[*at]);
  bool any = false;
  for (std::size_t i = 0; i < columns.names.size() && i < row.size(); ++i) {
    const std::string& name = columns.names[i];
    const auto value = number_in(row[i]);
    if (!value || *value <= 0) continue;
    const double flops = 2.0 * static_cast<double>(shape->m) * static_cast<double>(shape->n) *
                         static_cast<double>(shape->k);
    if (std::find(rate_columns.begin(), rate_columns.end(), name) != rate_columns.end())
      add(*shape, *value, statistic_of(name, reading.section), reading, line.number, log);
    else if (name == "time_us" || name == "time_ms")
      add(*shape, flops / (*value * (name == "time_us" ? 1e-6 : 1e-3)) / 1e12, "mean", reading,
          line.number, log);
    else
      continue;
    any = true;
  }
  if (!any) leave_unread(log, line.number, line.text, "a shape without a rate");
  return true;
}

void read_heading(std::string_view text, Reading& reading, ImportedLog& log) {
  const std::string low = lowered(text);
  if (const auto dtype = after(low, "dtype:")) reading.dtype = gemm_dtype(*dtype);
  if (const auto option = after(low, "--dtype ")) {
    const auto named = words(*option);
    if (!named.empty()) reading.dtype = gemm_dtype(named.front());
  }
  if (const auto name = after(text, "_CudaDeviceProperties(name='"))
    log.facts["device"] = name->substr(0, name->find('\''));
  if (const auto torch = after(text, "torch=")) log.facts["torch"] = *torch;
  if (const auto cuda = after(text, "cuda="); cuda && text.starts_with("cuda="))
    log.facts["cuda"] = *cuda;
  const auto begins = [&](std::string_view word) { return trimmed(low).starts_with(word); };
  if (begins("msmf")) reading.section = "sustained";
  if (begins("mamf")) reading.section = "burst";
  if (begins("grid")) reading.section.clear();
}

// A shape in a line that could not be read otherwise is a result that is lost.
bool names_a_shape(std::string_view text) {
  const auto all = words(text);
  return std::any_of(all.begin(), all.end(),
                     [](std::string_view w) { return shape_of(w).has_value(); });
}

}  // namespace

std::string gemm_dtype(std::string_view name) {
  std::string low = lowered(trimmed(name));
  for (const std::string_view prefix : {"torch.", "c10::"})
    if (low.starts_with(prefix)) low.erase(0, prefix.size());
  for (const auto& [text, dtype] :
       {std::pair{"bfloat16", "bf16"}, std::pair{"bf16", "bf16"}, std::pair{"float16", "fp16"},
        std::pair{"half", "fp16"}, std::pair{"fp16", "fp16"}, std::pair{"float8", "fp8"},
        std::pair{"fp8", "fp8"}, std::pair{"mxfp8", "mxfp8"}, std::pair{"nvfp4", "nvfp4"},
        std::pair{"tf32", "tf32"}, std::pair{"float32", "fp32"}, std::pair{"float", "fp32"},
        std::pair{"fp32", "fp32"}, std::pair{"int8", "int8"}})
    if (low.starts_with(text)) return dtype;
  return "";
}

bool looks_like_gemm_table(std::string_view text) {
  const std::string low = lowered(text.substr(0, 1 << 18));
  if (low.find("mxnxk") != low.npos || low.find("tflops @") != low.npos ||
      low.find("'tflops':") != low.npos || low.find("mamf") != low.npos)
    return true;
  Reading reading;
  const auto lines = log_lines(low);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const LogLine& line) { return read_columns(line.text, reading); });
}

void import_gemm_table(std::string_view text, ImportedLog& log) {
  Reading reading;
  for (const LogLine& line : log_lines(text)) {
    if (read_columns(line.text, reading)) continue;
    if (read_progress(line, reading, log) || read_summary(line, reading, log) ||
        read_trial(line, reading, log) || read_table_row(line, reading, log))
      continue;
    if (names_a_shape(line.text))
      leave_unread(log, line.number, line.text, "a shape without a rate");
    else
      read_heading(line.text, reading, log);
  }
}

}  // namespace shardwise
