#include "planner/report/catalog_tables.hpp"

#include <array>

#include "planner/figures.hpp"

namespace shardwise {
namespace {

std::string shown_gb_per_s(BytesPerSecond r) { return fixed(r.value / 1e9, 0); }

std::string half_rate(const Gpu& g) {
  const auto rate = g.rate(DType::bf16) ? g.rate(DType::bf16) : g.rate(DType::fp16);
  return rate ? fixed(rate->value / 1e12, 1) : "-";
}

// Of the price on demand, and where spot ones are of another, of those.
std::string regions(const CloudPrice& p) {
  if (p.spot_region.empty()) return p.region.empty() ? "-" : p.region;
  return p.region + (p.region.empty() ? "spot " : ", spot ") + p.spot_region;
}

template <class Entries>
std::vector<const Provenance*> sources_of(const Entries& entries) {
  std::vector<const Provenance*> sources;
  for (const auto& entry : entries) sources.push_back(&entry.provenance);
  return sources;
}

using C = Catalog;
constexpr std::array<CatalogListing, 6> listings{
    {{"gpus", gpu_table, [](const C& c) { return sources_of(c.gpus); }},
     {"nodes", node_table, [](const C& c) { return sources_of(c.nodes); }},
     {"networks", network_table, [](const C& c) { return sources_of(c.networks); }},
     {"models", model_table, [](const C& c) { return sources_of(c.models); }},
     {"frameworks", framework_table, [](const C& c) { return sources_of(c.frameworks); }},
     {"prices", price_table, [](const C& c) { return sources_of(c.prices.cloud); }}}};

}  // namespace

std::span<const CatalogListing> catalog_listings() { return listings; }

Table gpu_table(const Catalog& c) {
  Table t{{"gpu", "memory GiB", "usable GiB", "GB/s", "dense 16-bit TFLOP/s", "NVLink GB/s", "W"},
          {}};
  for (const Gpu& g : c.gpus)
    t.rows.push_back({g.id, shown_gib_number(g.memory), shown_gib_number(g.usable_memory()),
                      shown_gb_per_s(g.memory_bandwidth), half_rate(g), shown_gb_per_s(g.nvlink),
                      fixed(g.power_w, 0)});
  return t;
}

Table node_table(const Catalog& c) {
  Table t{{"node", "gpu", "gpus", "host RAM GiB", "NICs", "network"}, {}};
  for (const Node& n : c.nodes)
    t.rows.push_back({n.id, n.gpu, std::to_string(n.gpus),
                      n.host_ram ? shown_gib_number(*n.host_ram) : "-", std::to_string(n.nic_count),
                      n.network});
  return t;
}

Table network_table(const Catalog& c) {
  Table t{{"network", "kind", "port GB/s", "latency us"}, {}};
  for (const Network& n : c.networks)
    t.rows.push_back(
        {n.id, n.kind, fixed(n.port_bandwidth.value / 1e9, 2), fixed(n.latency.value * 1e6, 1)});
  return t;
}

Table model_table(const Catalog& c) {
  Table t{{"model", "parameters", "active", "layers", "hidden", "heads", "kv", "vocabulary"}, {}};
  for (const Transformer& m : c.models) {
    const ParameterCount n = parameter_count(m);
    t.rows.push_back({m.id, grouped(n.total), grouped(n.active), std::to_string(m.layers),
                      std::to_string(m.hidden), std::to_string(m.heads), std::to_string(m.kv_heads),
                      std::to_string(m.vocab)});
  }
  return t;
}

Table framework_table(const Catalog& c) {
  Table t{{"framework", "name", "version read"}, {}};
  for (const Framework& f : c.frameworks) t.rows.push_back({f.id, f.name, f.version});
  return t;
}

Table price_table(const Catalog& c) {
  Table t{{"instance", "provider", "gpu", "gpus", "$/hour", "spot $/hour", "region", "date"}, {}};
  for (const CloudPrice& p : c.prices.cloud)
    t.rows.push_back({p.instance, p.provider, p.gpu, std::to_string(p.gpus),
                      p.per_hour ? fixed(p.per_hour->value, 2) : "-",
                      p.spot_per_hour ? fixed(p.spot_per_hour->value, 2) : "-", regions(p),
                      p.provenance.date});
  return t;
}

}  // namespace shardwise
