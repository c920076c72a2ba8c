#include "planner/report/json_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "simulator/offload_choice.hpp"

namespace shardwise {
double json_gib(Bytes bytes) { return std::round(gib(bytes) * 1000.0) / 1000.0; }

double json_number(double value) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 6);
  double rounded = value;
  std::from_chars(text.data(), end.ptr, rounded);
  return rounded;
}

std::string_view trust_name(Trust trust) {
  constexpr std::array<std::string_view, 4> names{"measured", "published", "datasheet", "assumed"};
  return names[static_cast<std::size_t>(trust)];
}

void add_plan_files(Json& to, const ResolvedRequest& r) {
  const auto notes = [](const std::vector<KeyNote>& list) {
    Json j = Json::array();
    for (const KeyNote& note : list) j.push_back({{"key", note.key}, {"why", note.why}});
    return j;
  };
  for (const PlanFileReport& report : r.plan_files)
    to["plan_from"].push_back({{"file", report.file},
                               {"format", report.format},
                               {"understood", report.understood},
                               {"ignored", notes(report.ignored)},
                               {"not_honoured", notes(report.not_honoured)}});
}

Json settings_json(const Question& q) {
  Json settings = workload_json(q.workload);
  settings["batch"] = q.plan.global_batch();
  settings["microbatch"] = q.plan.microbatch;
  settings["recompute"] = q.plan.recompute;
  settings["offload"] = offload_name(q.plan.offload);
  return settings;
}

Json workload_json(const Workload& w) {
  Json settings = {{"framework", w.framework.id},
                   {"optimizer", w.optimizer->name},
                   {"precision", name(w.compute)},
                   {"sequence", w.sequence}};
  if (w.preference != nullptr) settings["preference"] = w.preference->name;
  if (!row(w.method).adapter) return settings;
  settings["lora_rank"] = w.adapter.rank;
  settings["lora_targets"] = target_names(w.adapter.targets);
  settings["quantization"] = row(w.adapter.base).name;
  return settings;
}

Json step_time_json(const Interval<Seconds>& step) {
  return {{"low", json_number(step.low.value)},
          {"expected", json_number(step.expected.value)},
          {"high", json_number(step.high.value)}};
}

Json memory_json(const MemoryFigures& m) {
  return {{"allocated", json_gib(m.allocated)},
          {"reserved", json_gib(m.reserved)},
          {"device", json_gib(m.device)}};
}

Json breakdown_json(const MemoryBreakdown& breakdown) {
  Json parts = Json::object();
  for (std::size_t c = 0; c < memory_category_count; ++c)
    if (breakdown[c] != 0)
      parts[std::string(memory_category_names[c])] = json_gib(Bytes(breakdown[c]));
  return parts;
}

Json step_breakdown_json(StepBreakdown b) {
  const Seconds optimizer = b.compute["optimizer"];
  b.compute.erase("optimizer");
  Json compute = Json::object(), exposed = Json::object();
  for (const auto& [key, t] : b.compute) compute[key] = json_number(t.value);
  for (const auto& [key, t] : b.exposed) exposed[key] = json_number(t.value);
  return {{"compute", compute},
          {"exposed", exposed},
          {"bubble", json_number(b.bubble.value)},
          {"host", json_number(b.host.value)},
          {"offload", json_number(b.offload.value)},
          {"optimizer", json_number(optimizer.value)}};
}

void add_host_ram(Json& to, const HostMemory& host) {
  to["host_ram_gib"] = json_gib(std::max(host.steady, host.load_peak));
  to["host_ram_training_gib"] = json_gib(host.steady);
  to["host_ram_loading_gib"] = json_gib(host.load_peak);
  if (host.drives > Bytes(0)) to["drives_gib"] = json_gib(host.drives);
}

namespace {

// load, first_step, steady, save -> memory
Json phases_json(const StageForecast& s) {
  Json phases = Json::object();
  if (s.load) phases["load"] = memory_json(*s.load);
  phases["first_step"] = memory_json(s.first_step_peak);
  phases["steady"] = memory_json(s.steady_peak);
  phases["save"] = memory_json(s.save);
  return phases;
}

}  // namespace

Json stage_json(const StageForecast& s) {
  return {{"stage", s.stage},
          {"gpu", s.gpu},
          {"first_layer", s.first_layer},
          {"layers", s.layers},
          {"peak_memory_gib", memory_json(s.peak)},
          {"needed_memory_gib", json_gib(s.needed)},
          {"phases_gib", phases_json(s)},
          {"capacity_gib", json_gib(s.capacity)},
          {"margin_gib", json_gib(s.capacity - s.peak.device)},
          {"breakdown_gib", breakdown_json(s.breakdown)}};
}

}  // namespace shardwise
