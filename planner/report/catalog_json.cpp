#include "planner/report/catalog_json.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

namespace shardwise {
namespace {

double json_gb_per_s(BytesPerSecond r) { return json_number(r.value / 1e9); }

template <class Entries>
Json all_of(const Entries& entries) {
  Json list = Json::array();
  for (const auto& entry : entries) list.push_back(entry_json(entry));
  return list;
}

using C = Catalog;
struct Kind {
  std::string_view name;
  Json (*entries)(const Catalog& catalog);
};
constexpr std::array<Kind, 6> kinds{
    {{"gpus", [](const C& c) { return all_of(c.gpus); }},
     {"nodes", [](const C& c) { return all_of(c.nodes); }},
     {"networks", [](const C& c) { return all_of(c.networks); }},
     {"models", [](const C& c) { return all_of(c.models); }},
     {"frameworks", [](const C& c) { return all_of(c.frameworks); }},
     {"prices", [](const C& c) { return all_of(c.prices.cloud); }}}};

}  // namespace

Json entry_json(const Gpu& g) {
  Json j = {{"gpu", g.id},
            {"memory_gib", json_gib(g.memory)},
            {"usable_memory_gib", json_gib(g.usable_memory())},
            {"memory_bandwidth_gb_per_s", json_gb_per_s(g.memory_bandwidth)}};
  const auto half = g.rate(DType::bf16) ? g.rate(DType::bf16) : g.rate(DType::fp16);
  if (half) j["dense_16_bit_tflops"] = json_number(half->value / 1e12);
  if (g.tensor_clock_mhz) j["tensor_clock_mhz"] = json_number(*g.tensor_clock_mhz);
  j["nvlink_gb_per_s"] = json_gb_per_s(g.nvlink);
  j["power_w"] = json_number(g.power_w);
  return j;
}

Json entry_json(const Node& n) {
  Json j = {{"node", n.id}, {"gpu", n.gpu}, {"gpus", n.gpus}};
  if (n.host_ram) j["host_ram_gib"] = json_gib(*n.host_ram);
  j["nics"] = n.nic_count;
  if (!n.network.empty()) j["network"] = n.network;
  return j;
}

Json entry_json(const Network& n) {
  return {{"network", n.id},
          {"kind", n.kind},
          {"port_gb_per_s", json_gb_per_s(n.port_bandwidth)},
          {"latency_us", json_number(n.latency.value * 1e6)}};
}

Json entry_json(const Transformer& m) {
  const ParameterCount n = parameter_count(m);
  return {{"model", m.id},          {"parameters", n.total}, {"active_parameters", n.active},
          {"layers", m.layers},     {"hidden", m.hidden},    {"heads", m.heads},
          {"kv_heads", m.kv_heads}, {"vocabulary", m.vocab}};
}

Json entry_json(const Framework& f) {
  return {{"framework", f.id}, {"name", f.name}, {"version_read", f.version}};
}

Json entry_json(const CloudPrice& p) {
  Json j = {{"instance", p.instance}, {"provider", p.provider}, {"gpu", p.gpu}, {"gpus", p.gpus}};
  if (p.per_hour) j["usd_per_hour"] = json_number(p.per_hour->value);
  if (p.spot_per_hour) j["spot_usd_per_hour"] = json_number(p.spot_per_hour->value);
  if (!p.region.empty()) j["region"] = p.region;
  if (!p.spot_region.empty()) j["spot_region"] = p.spot_region;
  j["date"] = p.provenance.date;
  return j;
}

Json entries_json(const Catalog& catalog, std::string_view kind) {
  for (const Kind& k : kinds)
    if (k.name == kind) return k.entries(catalog);
  return nullptr;
}

void add_provenance(Json& to, const Provenance& p) {
  to["source"] = p.source;
  to["date"] = p.date;
  for (const FieldSource& f : p.fields) to["field_sources"][f.field] = f.source;
}

}  // namespace shardwise
