#include "calibrate/import_nvbandwidth.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include "calibrate/log_text.hpp"

namespace shardwise {
namespace {

// The matrix that is being read.
struct Matrix {
  std::string test;
  bool nanoseconds = false;
  std::size_t columns = 0;  // of the line of column numbers; 0: not seen yet
  double sum = 0;
  int cells = 0;
};

void add_cell(const Matrix& matrix, std::int64_t row, std::int64_t column, double value, int line,
              ImportedLog& log) {
  Measurement m;
  m.bench = matrix.nanoseconds ? "latency" : "copy";
  m.sizes = {{"row", row}, {"column", column}};
  m.labels = nvbandwidth_labels(matrix.test);
  if (log.facts.count("device")) m.labels["device"] = log.facts["device"];
  m.quantity = matrix.nanoseconds ? "time_s" : "bytes_per_s";
  m.value = value * (matrix.nanoseconds ? 1e-9 : 1e9);
  m.samples = 1;
  m.source = at_line(log, line);
  log.measurements.push_back(m);
}

bool read_column_numbers(const std::vector<std::string_view>& cells, Matrix& matrix) {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (whole_number_in(cells[i]) != static_cast<std::int64_t>(i)) return false;
  matrix.columns = cells.size();
  return !cells.empty();
}

// "0     55.64     N/A": a row number and the cells.
void read_matrix_row(const LogLine& line, Matrix& matrix, ImportedLog& log) {
  const auto cells = words(line.text);
  const auto row = cells.empty() ? std::nullopt : whole_number_in(cells.front());
  if (!row || cells.size() < 2) return;
  if (cells.size() - 1 > matrix.columns) {
    leave_unread(log, line.number, line.text, "more values than columns");
    return;
  }
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto value = number_in(cells[i]);
    if (value && *value > 0) {
      add_cell(matrix, *row, static_cast<std::int64_t>(i) - 1, *value, line.number, log);
      matrix.sum += *value;
      ++matrix.cells;
    } else if (!value && lowered(cells[i]) != "n/a") {
      leave_unread(log, line.number, line.text, "a value that is no number");
    }
  }
  if (cells.size() - 1 < matrix.columns)
    leave_unread(log, line.number, line.text, "the row is cut off");
}

void check_sum(const LogLine& line, const Matrix& matrix, ImportedLog& log) {
  const auto said = words(line.text);
  const auto sum = said.empty() ? std::nullopt : number_in(said.back());
  if (!sum) return;
  if (matrix.cells == 0)
    leave_unread(log, line.number, line.text, "a sum without its matrix");
  else if (std::abs(*sum - matrix.sum) > 0.01 * matrix.sum + 0.01 * matrix.cells)
    leave_unread(log, line.number, line.text, "the sum is not that of the matrix above");
}

void read_facts(std::string_view text, ImportedLog& log) {
  if (const auto v = after(text, "nvbandwidth Version:"))
    log.facts["tool"] = "nvbandwidth " + std::string(*v);
  else if (const auto cuda = after(text, "CUDA Runtime Version:"))
    log.facts["cuda"] = *cuda;
  else if (const auto driver = after(text, "Driver Version:");
           driver && text.find("CUDA") == text.npos)
    log.facts["driver"] = *driver;
  else if (const auto device = after(text, "Device 0:"))
    log.facts["device"] = trimmed(device->substr(0, device->find(" (")));
}

}  // namespace

std::map<std::string, std::string> nvbandwidth_labels(std::string_view test) {
  std::map<std::string, std::string> labels{{"test", std::string(test)}};
  std::string direction(test);
  for (const std::string_view engine : {"ce", "sm", "tma"}) {
    const std::string ending = "_" + std::string(engine);
    if (direction.size() > ending.size() && direction.ends_with(ending)) {
      labels["engine"] = engine;
      direction.resize(direction.size() - ending.size());
      break;
    }
  }
  for (const std::string_view word : {"_memcpy", "_copy"})
    if (const std::size_t at = direction.find(word); at != direction.npos)
      direction.erase(at, word.size());
  labels["direction"] = direction;
  return labels;
}

bool looks_like_nvbandwidth(std::string_view text) {
  return text.find("nvbandwidth Version") != text.npos ||
         (text.find("memcpy_ce") != text.npos && text.find("(row)") != text.npos);
}

void import_nvbandwidth(std::string_view text, ImportedLog& log) {
  Matrix matrix;
  for (const LogLine& line : log_lines(text)) {
    const std::string low = lowered(line.text);
    if (const auto running = after(low, "running ")) {
      const auto name = words(*running);
      matrix = {};
      if (!name.empty()) matrix.test = name.front().substr(0, name.front().find('.'));
    } else if (low.find("(row)") != low.npos) {
      matrix.nanoseconds = low.find("(ns)") != low.npos;
      matrix.columns = 0;
    } else if (trimmed(low).starts_with("sum ")) {
      check_sum(line, matrix, log);
      matrix = {};
    } else if (trimmed(low).starts_with("waived")) {
      leave_unread(log, line.number, line.text, "waived: this machine cannot run the test");
    } else if (low.find("error") != low.npos) {
      leave_unread(log, line.number, line.text, "nvbandwidth reports an error");
    } else if (!matrix.test.empty() && matrix.columns == 0 &&
               read_column_numbers(words(line.text), matrix)) {
      continue;
    } else if (!matrix.test.empty() && matrix.columns > 0) {
      read_matrix_row(line, matrix, log);
    } else {
      read_facts(line.text, log);
    }
  }
}

}  // namespace shardwise
