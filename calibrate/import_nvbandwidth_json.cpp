#include "calibrate/import_nvbandwidth.hpp"
#include "calibrate/log_text.hpp"
#include "catalog/json_document.hpp"

namespace shardwise {
namespace {

void read_cell(const JsonDocument& d, JsonIndex cell, Measurement m, bool nanoseconds,
               ImportedLog& log) {
  const auto word = d.as_text(cell);
  const auto value = word ? number_in(*word) : d.as_number(cell);
  if (value && *value > 0) {
    m.value = *value * (nanoseconds ? 1e-9 : 1e9);
    log.measurements.push_back(std::move(m));
  } else if (!value && !(word && lowered(*word) == "n/a")) {
    leave_unread(log, 0, d.pointer(cell), "a value that is no number");
  }
}

void read_testcase(const JsonDocument& d, JsonIndex test, ImportedLog& log) {
  const std::string name = text_of_member(d, test, "name"),
                    status = text_of_member(d, test, "status");
  const JsonIndex matrix = d.member(test, "bandwidth_matrix");
  if (matrix == no_json || d.at(matrix).kind != JsonKind::array) {
    leave_unread(log, 0, name, "no matrix: " + (status.empty() ? "no status" : status));
    return;
  }
  const bool nanoseconds =
      text_of_member(d, test, "bandwidth_description").find("(ns)") != std::string::npos;
  std::int64_t row = 0;
  for (const JsonIndex r : d.children(matrix)) {
    std::int64_t column = 0;
    for (const JsonIndex cell : d.children(r)) {
      Measurement m;
      m.bench = nanoseconds ? "latency" : "copy";
      m.sizes = {{"row", row}, {"column", column}};
      m.labels = nvbandwidth_labels(name);
      if (log.facts.count("device")) m.labels["device"] = log.facts["device"];
      m.quantity = nanoseconds ? "time_s" : "bytes_per_s";
      m.samples = 1;
      m.source = log.file + d.pointer(cell);
      read_cell(d, cell, std::move(m), nanoseconds, log);
      ++column;
    }
    ++row;
  }
}

// "GPU Device list": ["0: NVIDIA A10 (00000000:01:00)", ...]
void read_device(const JsonDocument& d, JsonIndex root, ImportedLog& log) {
  const JsonIndex devices = d.member(root, "GPU Device list");
  if (devices == no_json || d.at(devices).children == 0) return;
  const auto first = d.as_text(d.children(devices).front());
  if (!first) return;
  std::string_view name = *first;
  if (const auto rest = after(name, ": ")) name = *rest;
  log.facts["device"] = trimmed(name.substr(0, name.find(" (")));
}

}  // namespace

bool looks_like_nvbandwidth_json(std::string_view text) {
  return trimmed(text.substr(0, 4096)).starts_with("{") &&
         text.substr(0, 4096).find("\"nvbandwidth\"") != text.npos;
}

void import_nvbandwidth_json(std::string_view text, ImportedLog& log) {
  const auto document = parse_json(text, log.file);
  if (!document) {
    leave_unread(log, 0, "", document.error().front().what);
    return;
  }
  const JsonIndex root = document->member(0, "nvbandwidth");
  if (root == no_json) {
    leave_unread(log, 0, "", "no member \"nvbandwidth\"");
    return;
  }
  log.facts["driver"] = text_of_member(*document, root, "Driver Version");
  log.facts["tool"] = "nvbandwidth " + text_of_member(*document, root, "git_version");
  read_device(*document, root, log);
  if (const std::string error = text_of_member(*document, root, "error"); !error.empty())
    leave_unread(log, 0, error, "nvbandwidth reports an error");
  const JsonIndex tests = document->member(root, "testcases");
  if (tests != no_json)
    for (const JsonIndex test : document->children(tests)) read_testcase(*document, test, log);
}

}  // namespace shardwise
