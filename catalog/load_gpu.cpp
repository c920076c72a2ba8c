#include <array>
#include <cmath>
#include <utility>

#include "catalog/json_members.hpp"
#include "catalog/load.hpp"
#include "catalog/load_folder.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::pair<std::string_view, PeerAccess>, 3> peer_access{{
    {"yes", PeerAccess::yes},
    {"no", PeerAccess::no},
    {"unknown", PeerAccess::unknown},
}};

struct RateKey {
  std::string_view key;
  DType dtype;
};
constexpr std::array<RateKey, 8> rate_keys{{
    {"dense_fp32_tflops", DType::fp32},
    {"dense_tf32_tflops", DType::tf32},
    {"dense_fp16_fp32acc_tflops", DType::fp16},
    {"dense_bf16_tflops", DType::bf16},
    {"dense_fp8_tflops", DType::fp8},
    {"dense_mxfp8_tflops", DType::mxfp8},
    {"dense_fp4_tflops", DType::nvfp4},
    {"dense_int8_tops", DType::int8},
}};

Bytes from_gib(double gib) { return Bytes(std::llround(gib * 1024.0 * 1024.0 * 1024.0)); }
Bytes from_mib(double mib) { return Bytes(std::llround(mib * 1024.0 * 1024.0)); }
BytesPerSecond from_gb_per_s(double gb) { return BytesPerSecond(gb * 1e9); }

std::optional<FlopsPerSecond> tflops_rate(JsonReader& r, std::string_view key) {
  const auto tflops = r.maybe_number(key, 0.1, 100000);
  if (!tflops) return std::nullopt;
  return FlopsPerSecond(*tflops * 1e12);
}

// Measured rates are kept as they were read; the fraction of the datasheet is ours.
std::optional<double> share_of_sheet(JsonReader& r, std::string_view key, double unit,
                                     std::optional<double> sheet) {
  const auto measured = r.maybe_number(key, 0.1, 1e6);
  if (!measured || !sheet) return std::nullopt;
  const double share = *measured * unit / *sheet;
  if (share > 1.25) r.problem(key, "at most 1.25 of the dense rate or bandwidth beside it");
  return share;
}

std::optional<double> sheet_rate(const Gpu& gpu, DType dtype) {
  if (const auto found = gpu.rate(dtype)) return found->value;
  return std::nullopt;
}

GpuEfficiency read_efficiency(JsonReader& gpu_reader, const Gpu& gpu) {
  GpuEfficiency e;
  auto r = gpu_reader.maybe_object("measured");
  if (!r) return e;
  e.gemm_peak_fraction = share_of_sheet(*r, "gemm_bf16_tflops", 1e12, sheet_rate(gpu, DType::bf16));
  e.gemm_peak_fraction_fp8 =
      share_of_sheet(*r, "gemm_fp8_tflops", 1e12, sheet_rate(gpu, DType::fp8));
  e.memory_fraction = share_of_sheet(*r, "copy_gb_per_s", 1e9, gpu.memory_bandwidth.value);
  e.trust = r->choice("trust", trust_names);
  e.provenance = r->provenance();
  r->finish();
  return e;
}

void read_memory(JsonReader& r, Gpu& gpu) {
  gpu.memory = from_gib(r.number("memory_gib", 1, 4096));
  const double nominal_mib = static_cast<double>(gpu.memory.value) / (1024.0 * 1024.0);
  if (const auto mib = r.maybe_number("memory_reported_mib", 1, 1.05 * nominal_mib))
    gpu.memory_reported = from_mib(*mib);
  if (const auto gib = r.maybe_number("memory_offered_gib", 0.5, nominal_mib / 1024.0))
    gpu.memory_offered = from_gib(*gib);
  gpu.shares_host_memory = r.maybe_flag("shares_host_memory").value_or(false);
  gpu.memory_bandwidth = from_gb_per_s(r.number("memory_bandwidth_gb_per_s", 1, 100000));
  gpu.l2 = from_mib(r.maybe_number("l2_mib", 0.1, 10000).value_or(0));
}

void read_chip(JsonReader& r, Gpu& gpu) {
  gpu.sm_count = r.maybe_integer("sm_count", 1, 10000).value_or(0);
  gpu.boost_clock_mhz = r.maybe_number("boost_clock_mhz", 100, 10000).value_or(0);
  gpu.tensor_clock_mhz = r.maybe_number("tensor_clock_mhz", 100, 10000);
  gpu.power_w = r.maybe_number("tdp_w", 1, 10000).value_or(0);
  gpu.compute_capability = r.maybe_number("compute_capability", 1, 100).value_or(0);
  for (const RateKey& k : rate_keys)
    gpu.dense_rate[static_cast<std::size_t>(k.dtype)] = tflops_rate(r, k.key);
  gpu.fp16_accumulate_rate = tflops_rate(r, "dense_fp16_fp16acc_tflops");
  gpu.fp8_fp16_accumulate_rate = tflops_rate(r, "dense_fp8_fp16acc_tflops");
  gpu.rate_conflict = r.maybe_text("rate_conflict").value_or("");
  gpu.capped_rates = r.maybe_flag("capped_rates").value_or(false);
}

void read_links(JsonReader& r, Gpu& gpu) {
  gpu.pcie_generation = r.maybe_integer("pcie_generation", 1, 9).value_or(0);
  gpu.pcie_lanes = r.maybe_integer("pcie_lanes", 1, 32).value_or(0);
  gpu.nvlink = from_gb_per_s(r.number("scale_up_gb_per_s_per_direction", 0, 100000));
  r.ignore("scale_up_link");
  if (const auto c2c = r.maybe_number("host_link_gb_per_s_per_direction", 1, 100000))
    gpu.host_link = from_gb_per_s(*c2c);
  gpu.host_slowdown = r.maybe_number("host_slowdown", 0.1, 10).value_or(1);
  if (const auto us = r.maybe_number("host_us_per_fused_kernel", 0, 1e6))
    gpu.host_per_fused_kernel = Seconds(*us * 1e-6);
  gpu.peer_over_pcie = r.choice("peer_over_pcie", peer_access);
}

Gpu read_gpu(JsonReader& r) {
  Gpu gpu;
  gpu.id = r.text("id");
  gpu.name = r.text("name");
  gpu.aliases = r.texts("aliases");
  if (r.has("boards")) gpu.boards = r.texts("boards");
  gpu.gpus_per_board = r.maybe_integer("gpus_per_board", 2, 16).value_or(1);
  gpu.vendor = r.text("vendor");
  gpu.architecture = r.text("architecture");
  gpu.family = r.text("family");
  gpu.market = r.choice("market", market_names);
  gpu.stands_for_size = r.maybe_flag("stands_for_size").value_or(true);
  gpu.default_node = r.maybe_text("default_node").value_or("");
  r.ignore("release_date");
  read_memory(r, gpu);
  read_chip(r, gpu);
  read_links(r, gpu);
  gpu.efficiency = read_efficiency(r, gpu);
  gpu.notes = r.texts("notes");
  gpu.provenance = r.provenance();
  return gpu;
}

}  // namespace

Result<std::vector<Gpu>> load_gpus(const std::filesystem::path& root) {
  return load_folder<Gpu>(root, "devices", read_gpu);
}

}  // namespace shardwise
