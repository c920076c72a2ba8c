#include <algorithm>
#include <filesystem>

#include "catalog/json_document.hpp"
#include "catalog/json_members.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/link_calibration.hpp"
#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr double max_gb_per_s = 1e5, max_mib = 1e5;

constexpr std::array<std::pair<std::string_view, PathKind>, 5> p2p_level_rows{
    {{"NVL", PathKind::nvl},
     {"PIX", PathKind::pix},
     {"PXB", PathKind::pxb},
     {"PHB", PathKind::phb},
     {"SYS", PathKind::sys}}};

BytesPerSecond gb_per_s(JsonReader& r, std::string_view key) {
  return BytesPerSecond(r.number(key, 1e-3, max_gb_per_s) * 1e9);
}
Bytes mebibytes(JsonReader& r, std::string_view key) {
  return ceil_bytes(r.number(key, 0, max_mib) * 1024.0 * 1024.0);
}
Bytes kibibytes(JsonReader& r, std::string_view key) {
  return ceil_bytes(r.number(key, 0, max_mib) * 1024.0);
}

// An array of exactly n numbers between low and high.
template <std::size_t n>
std::array<double, n> exactly(JsonReader& r, std::string_view key, double low, double high) {
  std::array<double, n> result{};
  const std::vector<double> found = r.numbers(key);
  const bool good = found.size() == n && std::all_of(found.begin(), found.end(), [&](double v) {
                      return v >= low && v <= high;
                    });
  if (good)
    std::copy(found.begin(), found.end(), result.begin());
  else
    r.problem(key, std::to_string(n) + " numbers from " + shown_number(low) + " to " +
                       shown_number(high));
  return result;
}
PerProtocol<Seconds> protocol_latencies(JsonReader& r, std::string_view key) {
  PerProtocol<Seconds> result{};
  const auto us = exactly<protocol_count>(r, key, 0, max_us);
  for (std::size_t i = 0; i < us.size(); ++i) result[i] = Seconds(us[i] * 1e-6);
  return result;
}
template <std::size_t n>
std::array<BytesPerSecond, n> rates(JsonReader& r, std::string_view key) {
  std::array<BytesPerSecond, n> result{};
  const auto gb = exactly<n>(r, key, 0, max_gb_per_s);
  for (std::size_t i = 0; i < n; ++i) result[i] = BytesPerSecond(gb[i] * 1e9);
  return result;
}

LinkEvidence link_evidence(JsonReader& r) {
  LinkEvidence e;
  e.trust = r.choice("trust", trust_names);
  e.spread = r.number("spread", 0, 1);
  e.provenance = r.provenance();
  return e;
}

HopLatency hop(JsonReader r) {
  HopLatency h;
  h.tree = protocol_latencies(r, "tree_us");
  h.ring = protocol_latencies(r, "ring_us");
  h.nvls = microseconds(r, "nvls_us");
  h.nvls_tree = microseconds(r, "nvls_tree_us");
  h.pat = microseconds(r, "pat_us");
  r.finish();
  return h;
}

std::vector<double> size_factor(JsonReader& r, std::string_view key) {
  std::vector<double> found = r.numbers(key);
  const bool good = !found.empty() && std::all_of(found.begin(), found.end(),
                                                  [](double v) { return v > 0 && v <= 1; });
  if (!good) r.problem(key, "numbers above 0 and up to 1");
  return good ? found : std::vector<double>{1.0};
}

NcclConstants nccl_constants(JsonReader r) {
  NcclConstants c;
  c.tree_base = protocol_latencies(r, "tree_base_us");
  c.ring_base = protocol_latencies(r, "ring_base_us");
  c.pat_base = microseconds(r, "pat_base_us");
  c.pat_per_rank = microseconds(r, "pat_per_rank_us");
  c.nvlink = hop(r.object("nvlink"));
  c.pcie = hop(r.object("pcie"));
  c.net = hop(r.object("net"));
  c.host_overhead = microseconds(r, "host_overhead_us");
  c.plateau = r.number("plateau", 1, 10);
  c.plateau_before_ampere = r.number("plateau_before_ampere", 1, 10);
  c.ll_fraction = fraction(r, "ll_fraction");
  c.ll128_fraction = fraction(r, "ll128_fraction");
  c.tree_fraction = fraction(r, "tree_fraction");
  c.tree_ll_divisor = r.number("tree_ll_divisor", 1, 100);
  c.tree_ll128_one_node = fraction(r, "tree_ll128_one_node");
  c.tree_ll128_more_nodes = fraction(r, "tree_ll128_more_nodes");
  c.pat_fraction = fraction(r, "pat_fraction");
  c.pat_hop_divisor = r.number("pat_hop_divisor", 1, 100);
  c.ll_ceiling_between_nodes = rates<3>(r, "ll_ceiling_between_nodes_gb_per_s");
  c.tree_size_factor = {size_factor(r, "tree_size_factor_ll"),
                        size_factor(r, "tree_size_factor_ll128"),
                        size_factor(r, "tree_size_factor_simple")};
  c.p2p_level = r.choice("p2p_level", p2p_level_rows);
  c.evidence = link_evidence(r);
  r.finish();
  return c;
}

GpuGeneration generation(JsonReader r) {
  GpuGeneration g;
  g.name = r.text("name");
  g.vendor = r.text("vendor");
  g.compute_capability = r.number("compute_capability", 0, 100);
  g.link_payload = fraction(r, "link_payload");
  g.channel = gb_per_s(r, "channel_gb_per_s");
  g.nvls_channels = r.integer("nvls_channels", 0, 64);
  g.nvls_fraction = fraction(r, "nvls_fraction");
  g.nvls_fraction_trays = fraction(r, "nvls_fraction_trays");
  if (g.nvls_channels > 0 && (g.nvls_fraction <= 0 || g.nvls_fraction_trays <= 0))
    r.problem("nvls_fraction", "a number above 0 where nvls_channels is");
  g.ring_fraction = r.number("ring_fraction", 0.01, 1);
  g.own_share = r.number("own_share", 0, 1);
  g.own_share_of_all_reduce = r.number("own_share_of_all_reduce", 0, 1);
  g.filling_least = microseconds(r, "filling_least_us");
  g.filling_most = microseconds(r, "filling_most_us");
  if (g.filling_most < g.filling_least)
    r.problem("filling_most_us", "a number no less than filling_least_us");
  g.ll_ceiling = gb_per_s(r, "ll_ceiling_gb_per_s");
  g.ring_ll128 = rates<3>(r, "ring_ll128_gb_per_s");
  g.tree_ll128 = rates<3>(r, "tree_ll128_gb_per_s");
  g.tree = rates<3>(r, "tree_gb_per_s");
  g.nvls_tree = rates<3>(r, "nvls_tree_gb_per_s");
  g.evidence = link_evidence(r);
  r.finish();
  return g;
}

HostLinks host_links(JsonReader r) {
  HostLinks h;
  h.lane = rates<6>(r, "lane_gb_per_s");
  h.payload = exactly<6>(r, "payload", 0.01, 1);
  h.chip_link_payload = r.number("chip_link_payload", 0.01, 1);
  h.p2p = r.number("p2p", 0.01, 1);
  h.p2p_between_sockets = r.number("p2p_between_sockets", 0.01, 1);
  h.shm = r.number("shm", 0.01, 1);
  h.shm_shared = r.maybe_number("shm_shared", 0.01, 1).value_or(h.shm);
  h.ll = r.number("ll", 0.01, 1);
  h.cpu_hop = microseconds(r, "cpu_hop_us");
  h.root_complex = gb_per_s(r, "root_complex_gb_per_s");
  h.socket_link = gb_per_s(r, "socket_link_gb_per_s");
  h.memory_fraction = r.number("memory_fraction", 0.01, 1);
  h.memory_channel = gb_per_s(r, "memory_channel_gb_per_s");
  h.memory_channels_per_socket = r.integer("memory_channels_per_socket", 1, 64);
  h.memory_channels_of_one_socket = r.integer("memory_channels_of_one_socket", 1, 64);
  h.drive = gb_per_s(r, "drive_gb_per_s");
  h.gpus_per_pcie_switch = r.integer("gpus_per_pcie_switch", 1, 64);
  h.evidence = link_evidence(r);
  r.finish();
  return h;
}

NetworkLinks network_links(JsonReader r) {
  NetworkLinks n;
  n.reference_latency = microseconds(r, "reference_latency_us");
  n.staged = r.number("staged", 0.01, 1);
  n.nodes_per_leaf = r.integer("nodes_per_leaf", 1, 100'000);
  n.evidence = link_evidence(r);
  r.finish();
  return n;
}

PointToPointLinks point_to_point_links(JsonReader r) {
  PointToPointLinks p;
  p.nvlink_fraction = r.number("nvlink_fraction", 0.01, 1);
  p.exchange_fraction = r.number("exchange_fraction", 0.01, 1);
  p.own_share = r.number("own_share", 0, 1);
  p.per_peer = microseconds(r, "per_peer_us");
  p.evidence = link_evidence(r);
  r.finish();
  return p;
}

CommunicatorBuffers communicator_buffers(JsonReader r) {
  CommunicatorBuffers b;
  b.fixed = mebibytes(r, "fixed_mib");
  b.ring_per_channel = mebibytes(r, "ring_per_channel_mib");
  b.tree_pair_per_channel = mebibytes(r, "tree_pair_per_channel_mib");
  b.tree_per_channel = mebibytes(r, "tree_per_channel_mib");
  b.peer_per_channel = mebibytes(r, "peer_per_channel_mib");
  b.nvls_chunk = kibibytes(r, "nvls_chunk_kib");
  b.shared_pool_chunk = kibibytes(r, "shared_pool_chunk_kib");
  b.channel_limit = r.integer("channel_limit", 1, 1024);
  b.pcie_channels = r.integer("pcie_channels", 1, 64);
  b.point_to_point_channels_nvlink = r.integer("point_to_point_channels_nvlink", 1, 64);
  b.point_to_point_channels_pcie = r.integer("point_to_point_channels_pcie", 1, 64);
  b.evidence = link_evidence(r);
  r.finish();
  return b;
}

}  // namespace

const GpuGeneration& LinkCalibration::generation(std::string_view vendor,
                                                 double compute_capability) const {
  require(!generations.empty(), "a link calibration knows at least one generation of GPUs");
  const GpuGeneration* best = nullptr;
  for (const GpuGeneration& g : generations) {
    const bool serves = g.vendor == vendor && g.compute_capability <= compute_capability + 1e-9;
    if (serves && (!best || g.compute_capability >= best->compute_capability)) best = &g;
  }
  return best ? *best : generations.front();
}

Result<LinkCalibration> load_link_calibration(const std::string& path) {
  const Result<JsonDocument> document = parse_json_file(path, path);
  if (!document) return document.error();
  Problems problems;
  JsonReader r(*document, problems);
  LinkCalibration c;
  c.name = r.text("name");
  c.provenance = r.provenance();
  c.nccl = nccl_constants(r.object("nccl"));
  for (JsonReader& row : r.objects("generations")) c.generations.push_back(generation(row));
  if (c.generations.empty()) r.problem("generations", "at least one row");
  c.host = host_links(r.object("host"));
  c.network = network_links(r.object("network"));
  c.point_to_point = point_to_point_links(r.object("point_to_point"));
  c.buffers = communicator_buffers(r.object("buffers"));
  r.finish();
  if (!problems.empty()) return problems;
  return c;
}

}  // namespace shardwise
