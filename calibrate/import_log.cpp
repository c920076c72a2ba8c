#include "calibrate/import_log.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "calibrate/import_gemm_table.hpp"
#include "calibrate/import_kineto.hpp"
#include "calibrate/import_nccl_tests.hpp"
#include "calibrate/import_nccl_tests_json.hpp"
#include "calibrate/import_nvbandwidth.hpp"
#include "calibrate/import_sweeps.hpp"
#include "calibrate/measuring/measurement_file.hpp"
#include "catalog/text_file.hpp"

namespace shardwise {
namespace {

// One format. The first row that recognises a text reads it: the stricter ones stand first.
struct LogFormat {
  std::string_view name;
  bool (*recognises)(std::string_view text);
  void (*read)(std::string_view text, const std::vector<KernelClass>& classes, ImportedLog& log);
};

template <void (*read)(std::string_view, ImportedLog&)>
void plain(std::string_view text, const std::vector<KernelClass>&, ImportedLog& log) {
  read(text, log);
}

bool looks_like_our_own(std::string_view text) {
  return text.starts_with("{\"shardwise_measurements\"");
}

// The file that shardwise-calibrate writes.
void import_our_own(std::string_view text, ImportedLog& log) {
  const auto file = parse_measurement_file(std::string(text), log.file);
  if (!file) {
    for (const Problem& p : file.error()) leave_unread(log, 0, p.where, p.what);
    return;
  }
  log.facts = file->machine.facts;
  if (!file->machine.gpus.empty())
    for (const auto& [key, value] : file->machine.gpus.front())
      log.facts[key == "name" ? "device" : key] = value;
  log.measurements = measurements(*file, log.file);
  for (const Entry& e : file->entries)
    if (e.finding.outcome != Outcome::measured)
      leave_unread(log, 0, identity(e.point),
                   std::string(outcome_name(e.finding.outcome)) + ", " + e.finding.why);
}

constexpr std::array<LogFormat, 8> formats{
    {{"measurements of shardwise-calibrate", looks_like_our_own, plain<import_our_own>},
     {"nvbandwidth JSON", looks_like_nvbandwidth_json, plain<import_nvbandwidth_json>},
     {"nccl-tests JSON", looks_like_nccl_tests_json, plain<import_nccl_tests_json>},
     {"PyTorch profiler trace", looks_like_kineto, import_kineto},
     {"micro-benchmarks of catalog/runs", looks_like_sweeps, plain<import_sweeps>},
     {"nccl-tests", looks_like_nccl_tests, plain<import_nccl_tests>},
     {"nvbandwidth", looks_like_nvbandwidth, plain<import_nvbandwidth>},
     {"GEMM table", looks_like_gemm_table, plain<import_gemm_table>}}};

// The first bytes of gzip, zstd and xz: people store traces and logs that way.
bool compressed(std::string_view text) {
  using namespace std::string_view_literals;
  return text.starts_with("\x1f\x8b"sv) || text.starts_with("\x28\xb5\x2f\xfd"sv) ||
         text.starts_with("\xfd\x37zXZ"sv);
}

// What one person pasted of several tools is read as the first one's.
void tell_of_others(const LogFormat& format, std::string_view text, ImportedLog& log) {
  if (text.starts_with('{') || text.starts_with('[')) return;
  for (const LogFormat* other = &format + 1; other != formats.data() + formats.size(); ++other)
    if (other->recognises(text))
      leave_unread(
          log, 0, "",
          "it also holds " + std::string(other->name) + ": give that as a file of its own");
}

}  // namespace

ImportedLog import_log(std::string file, std::string_view text,
                       const std::vector<KernelClass>& classes) {
  ImportedLog log;
  log.file = std::move(file);
  log.lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  if (compressed(text)) {
    leave_unread(log, 0, "", "compressed: unpack it first");
    return log;
  }
  for (const LogFormat& format : formats) {
    if (!format.recognises(text)) continue;
    log.format = format.name;
    format.read(text, classes, log);
    tell_of_others(format, text, log);
    return log;
  }
  const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  leave_unread(log, 0, "",
               (empty ? "the file is empty; expected " : "no format that we know; expected ") +
                   known_log_formats());
  return log;
}

Result<ImportedLog> import_file(const std::string& path, const std::vector<KernelClass>& classes) {
  constexpr std::size_t two_gib = std::size_t{2} << 30;
  const auto text = read_text_file(path, path, two_gib);
  if (!text) return text.error();
  return import_log(std::filesystem::path(path).filename().string(), *text, classes);
}

std::string known_log_formats() {
  std::string names;
  for (const LogFormat& f : formats) {
    if (!names.empty()) names += ", ";
    names += f.name;
  }
  return names;
}

}  // namespace shardwise
