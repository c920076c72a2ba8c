#include <array>
#include <cmath>
#include <utility>

#include "catalog/json_members.hpp"
#include "catalog/load.hpp"
#include "catalog/load_folder.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::pair<std::string_view, IntraLink>, 6> intra_links{{
    {"nvswitch", IntraLink::nvswitch},
    {"nvlink-mesh", IntraLink::nvlink_mesh},
    {"nvlink-pairs", IntraLink::nvlink_pairs},
    {"nvlink-fours", IntraLink::nvlink_fours},
    {"pcie-switch", IntraLink::pcie_switch},
    {"pcie-host", IntraLink::pcie_host},
}};

std::optional<BytesPerSecond> gb_per_s_rate(JsonReader& r, std::string_view key) {
  const auto gb = r.maybe_number(key, 0.01, 1e6);
  if (!gb) return std::nullopt;
  return BytesPerSecond(*gb * 1e9);
}

std::optional<Bytes> maybe_size(JsonReader& r, std::string_view key, double unit) {
  const auto count = r.maybe_number(key, 0.01, 1e6);
  if (!count) return std::nullopt;
  return Bytes(std::llround(*count * unit));
}

std::vector<Market> read_default_for(JsonReader& r) {
  std::vector<Market> out;
  for (const std::string& name : r.texts("default_for")) {
    bool known = false;
    for (const auto& [market_name, market] : market_names) {
      if (market_name != name) continue;
      out.push_back(market);
      known = true;
    }
    if (!known) r.problem("default_for", "names out of consumer, workstation, datacenter");
  }
  return out;
}

void read_host(JsonReader& r, Node& node) {
  node.cpu_sockets = r.integer("cpu_sockets", 1, 1024);
  node.pcie_lanes_per_gpu = r.maybe_integer("pcie_lanes_per_gpu", 1, 32);
  node.pcie_generation = r.maybe_integer("pcie_generation", 1, 9);
  node.host_ram = maybe_size(r, "host_ram_gib", 1024.0 * 1024.0 * 1024.0);
  node.host_memory_bandwidth = gb_per_s_rate(r, "host_memory_bandwidth_gb_per_s");
  node.nvme_bandwidth = gb_per_s_rate(r, "nvme_gb_per_s");
  node.nvme = maybe_size(r, "nvme_tb", 1e12);
}

Node read_node(JsonReader& r) {
  Node node;
  node.id = r.text("id");
  node.name = r.text("name");
  node.aliases = r.texts("aliases");
  node.gpu = r.maybe_text("gpu").value_or("");
  node.gpus = r.integer("gpus", 1, 1024);
  node.intra_link = r.choice("intra_link", intra_links);
  node.nvlink_override = gb_per_s_rate(r, "nvlink_gb_per_s_per_direction");
  node.nvlink_domain_nodes = r.maybe_integer("nvlink_domain_nodes", 1, 1024).value_or(1);
  node.tray = r.maybe_text("tray").value_or("");
  node.trays = r.maybe_integer("trays", 1, 1024).value_or(0);
  if (node.tray.empty() != (node.trays == 0)) r.problem("trays", "a count together with tray");
  read_host(r, node);
  node.power_limit_w = r.maybe_number("power_limit_w", 1, 10000);
  node.network = r.maybe_text("network").value_or("");
  node.nic_count = r.maybe_integer("nic_count", 1, 1024).value_or(0);
  node.nic_bandwidth =
      BytesPerSecond(r.maybe_number("nic_gbit_per_s", 0.01, 1e5).value_or(0) * 1e9 / 8.0);
  if (!node.network.empty() && (node.nic_count == 0 || node.nic_bandwidth.value <= 0))
    r.problem("network", "nic_count and nic_gbit_per_s beside a network");
  node.default_for = read_default_for(r);
  node.notes = r.texts("notes");
  node.provenance = r.provenance();
  return node;
}

}  // namespace

Result<std::vector<Node>> load_nodes(const std::filesystem::path& root) {
  return load_folder<Node>(root, "nodes", read_node);
}

}  // namespace shardwise
