#include "calibrate/import_sweeps.hpp"

#include <optional>

#include "calibrate/import_gemm_table.hpp"
#include "calibrate/import_nccl_tests.hpp"
#include "calibrate/log_text.hpp"
#include "catalog/collective.hpp"
#include "catalog/json_reader.hpp"

namespace shardwise {
namespace {

constexpr double most_value = 1e18;

struct Rates {
  std::optional<double> time_us, algbw, busbw;  // [us], [GB/s]
};

Rates rates_of(JsonReader& r) {
  const auto positive = [&](std::string_view key) {
    const auto value = r.maybe_number(key, 0, most_value);
    return value && *value > 0 ? value : std::nullopt;
  };
  return {positive("time_us"), positive("algbw_GBs"), positive("busbw_GBs")};
}

// One placement's numbers. Where the GPUs are not told, algbw alone gives a time.
void add_collective(Measurement m, const Rates& rates, std::string_view placement,
                    ImportedLog& log) {
  const auto bytes = static_cast<double>(m.sizes.at("bytes"));
  const auto ranks = m.sizes.find("ranks");
  std::optional<double> time;
  if (rates.time_us)
    time = *rates.time_us * 1e-6;
  else if (rates.busbw && ranks != m.sizes.end() && ranks->second > 1)
    time = bytes * bus_factor(m.labels.at("collective"), ranks->second) / (*rates.busbw * 1e9);
  else if (rates.algbw)
    time = bytes / (*rates.algbw * 1e9);
  if (!time) {
    leave_unread(log, 0, m.source, "neither a time nor a bandwidth above zero");
    return;
  }
  m.value = *time;
  m.labels["placement"] = placement;
  m.quantity = "time_s";
  log.measurements.push_back(std::move(m));
}

void read_collective(JsonReader& r, Measurement m, const std::string& kind, ImportedLog& log) {
  m.bench = "collective";
  m.labels["collective"] = kind == "p2p" ? "send_recv" : collective_named(kind);
  m.sizes["bytes"] = r.maybe_integer64("size_bytes", 1, std::int64_t{1} << 50).value_or(1);
  const auto ranks = r.maybe_integer("gpus", 1, 1 << 20);
  const auto local = r.maybe_integer("gpus_per_node", 1, 1 << 20);
  if (ranks) m.sizes["ranks"] = *ranks;
  if (ranks && local) m.sizes["nodes"] = (*ranks + *local - 1) / *local;
  add_collective(m, rates_of(r), "out_of_place", log);
  if (auto in_place = r.maybe_object("in_place"))
    add_collective(m, rates_of(*in_place), "in_place", log);
}

void read_copy(JsonReader& r, Measurement m, const std::string& kind, ImportedLog& log) {
  const Rates rates = rates_of(r);
  const auto rate = rates.algbw ? rates.algbw : rates.busbw;
  if (!rate) {
    leave_unread(log, 0, m.source, "no bandwidth above zero");
    return;
  }
  m.bench = "copy";
  const std::string way = r.maybe_text("direction").value_or("unidirectional");
  m.labels["direction"] = kind == "hbm_copy"       ? "device_local"
                          : way == "bidirectional" ? "device_to_device_bidirectional"
                                                   : "device_to_device";
  m.quantity = "bytes_per_s";
  m.value = *rate * 1e9;
  log.measurements.push_back(std::move(m));
}

void read_gemm(JsonReader& r, Measurement m, ImportedLog& log) {
  JsonReader shape = r.object("gemm");
  m.bench = "gemm";
  for (const std::string_view key : {"m", "n", "k"})
    m.sizes[std::string(key)] = shape.integer64(key, 1, std::int64_t{1} << 40);
  m.labels["dtype"] = gemm_dtype(shape.text("dtype"));
  m.labels["statistic"] = "mean";
  m.quantity = "flops_per_s";
  m.value = r.number("tflops", 1e-3, 1e6) * 1e12;
  if (const auto theory = r.maybe_number("theory_tflops", 1e-3, 1e6))
    m.labels["datasheet_tflops"] = shown_number(*theory);
  log.measurements.push_back(std::move(m));
}

void read_record(JsonReader& r, ImportedLog& log) {
  if (r.has("model")) return;
  const std::string kind = r.maybe_text("kind").value_or("");
  Measurement m;
  m.samples = 1;
  m.source = log.file + ":" + r.maybe_text("id").value_or("record without id");
  for (const auto& [key, label] : {std::pair{"hardware", "device"}, std::pair{"sweep", "sweep"},
                                   std::pair{"topology", "topology"}})
    if (const auto text = r.maybe_text(key)) m.labels[label] = *text;
  if (kind == "gemm")
    read_gemm(r, std::move(m), log);
  else if (kind == "hbm_copy" || (kind == "p2p" && !r.has("size_bytes")))
    read_copy(r, std::move(m), kind, log);
  else if (kind == "p2p" || !collective_named(kind).empty())
    read_collective(r, std::move(m), kind, log);
  else
    leave_unread(log, 0, m.source, "a kind that is not understood: " + kind);
}

}  // namespace

bool looks_like_sweeps(std::string_view text) {
  const std::string_view start = trimmed(text.substr(0, 1 << 16));
  return start.starts_with("[") && start.find("\"kind\"") != start.npos &&
         start.find("\"id\"") != start.npos && start.find("\"ph\"") == start.npos;
}

void import_sweeps(std::string_view text, ImportedLog& log) {
  const auto document = parse_json(text, log.file);
  if (!document) {
    leave_unread(log, 0, "", document.error().front().what);
    return;
  }
  Problems problems;
  for (JsonReader& record : root_objects(*document, problems)) read_record(record, log);
  for (const Problem& p : problems) leave_unread(log, 0, p.where, p.what);
}

}  // namespace shardwise
