// `nccl-tests -J FILE` of versions 2.17 and later:
//   {"config": {"devices": [{"host": ..., "name": ...}]}, "results": [{"size": 8, "type": "float",
//    "redop": "sum", "out_of_place": {"time": 31.2, "alg_bw": ..., "bus_bw": ...},
//    "in_place": {...}, "experiment_name": ...}]}
#include <set>

#include "calibrate/import_nccl_tests.hpp"
#include "calibrate/import_nccl_tests_json.hpp"
#include "calibrate/log_text.hpp"
#include "calibrate/nccl_tests_row.hpp"
#include "catalog/json_document.hpp"

namespace shardwise {
namespace {

std::optional<double> number_of(const JsonDocument& d, JsonIndex object, std::string_view key) {
  const JsonIndex i = object == no_json ? no_json : d.member(object, key);
  return i == no_json ? std::nullopt : d.as_number(i);
}

struct Devices {
  std::int64_t ranks = 0;
  std::set<std::string> hosts;
  std::string name;
};

// Whatever the members are called, one of each device holds its host and one its name.
Devices devices_of(const JsonDocument& d) {
  Devices found;
  const JsonIndex config = d.member(0, "config");
  const JsonIndex list = config == no_json ? no_json : d.member(config, "devices");
  if (list == no_json) return found;
  for (const JsonIndex device : d.children(list)) {
    ++found.ranks;
    for (const JsonIndex member : d.children(device)) {
      const auto text = d.as_text(member);
      if (!text) continue;
      if (d.key(member).find("host") != std::string_view::npos) found.hosts.emplace(*text);
      if (d.key(member).find("name") != std::string_view::npos &&
          d.key(member).find("host") == std::string_view::npos)
        found.name = *text;
    }
  }
  return found;
}

std::string collective_of(const JsonDocument& d, JsonIndex row, const ImportedLog& log) {
  for (const auto& [at, key] : {std::pair{row, "experiment_name"}, std::pair{JsonIndex{0}, "cmd"},
                                std::pair{JsonIndex{0}, "args"}, std::pair{JsonIndex{0}, "name"}})
    if (const std::string named = collective_named(text_of_member(d, at, key)); !named.empty())
      return named;
  return collective_named(log.file);
}

constexpr double most_bytes = 1e15;  // no GPU holds so much

void read_row(const JsonDocument& d, JsonIndex row, const Devices& devices, ImportedLog& log) {
  const auto bytes = number_of(d, row, "size");
  const std::string collective = collective_of(d, row, log);
  const bool sent = bytes && *bytes >= 1 && *bytes <= most_bytes;
  if (!sent || collective.empty() || devices.ranks < 2) {
    leave_unread(log, 0, d.pointer(row),
                 !sent                ? "nothing was sent, or more than any GPU holds"
                 : collective.empty() ? "nothing says which collective ran"
                                      : "nothing says between how many GPUs it ran");
    return;
  }
  for (const std::string_view placement : {"out_of_place", "in_place"}) {
    const JsonIndex timing = d.member(row, placement);
    const auto time = number_of(d, timing, "time");
    if (!time || *time <= 0) continue;
    if (number_of(d, timing, "nwrong").value_or(0) > 0) {
      leave_unread(log, 0, d.pointer(timing), std::string(arrived_wrong));
      continue;
    }
    Measurement m;
    m.bench = "collective";
    m.sizes = {{"bytes", static_cast<std::int64_t>(*bytes)}, {"ranks", devices.ranks}};
    if (!devices.hosts.empty()) m.sizes["nodes"] = static_cast<std::int64_t>(devices.hosts.size());
    m.labels = {{"collective", collective},
                {"dtype", text_of_member(d, row, "type")},
                {"placement", std::string(placement)}};
    if (!devices.name.empty()) m.labels["device"] = devices.name;
    m.quantity = "time_s";
    m.value = *time * 1e-6;
    m.samples = 1;
    m.source = log.file + d.pointer(row);
    log.measurements.push_back(std::move(m));
  }
}

}  // namespace

bool looks_like_nccl_tests_json(std::string_view text) {
  return trimmed(text.substr(0, 4096)).starts_with("{") &&
         text.find("\"out_of_place\"") != text.npos && text.find("\"results\"") != text.npos;
}

void import_nccl_tests_json(std::string_view text, ImportedLog& log) {
  const auto document = parse_json(text, log.file);
  if (!document) {
    leave_unread(log, 0, "", document.error().front().what);
    return;
  }
  const Devices devices = devices_of(*document);
  if (!devices.name.empty()) log.facts["device"] = devices.name;
  const JsonIndex results = document->member(0, "results");
  if (results == no_json) return;
  for (const JsonIndex row : document->children(results)) read_row(*document, row, devices, log);
}

}  // namespace shardwise
