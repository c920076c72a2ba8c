#include "catalog/device_profile.hpp"

#include <algorithm>
#include <array>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

template <DType d>
double& issue(const DeviceConstants& t) {
  return t.family->gemm.issue_fraction[static_cast<std::size_t>(d)];
}
template <DType d>
double& sustained(const DeviceConstants& t) {
  return t.family->gemm.sustained_fraction[static_cast<std::size_t>(d)];
}
template <MemoryAccess access>
double& streamed(const DeviceConstants& t) {
  return t.family->memory.fraction[static_cast<std::size_t>(access)];
}

using T = const DeviceConstants&;
constexpr double microsecond = 1e-6, mebibyte = 1024.0 * 1024.0;

constexpr std::array<DeviceConstant, 29> constant_rows{{
    {"gemm.issue_fraction.fp32", 0.001, 1, 1, issue<DType::fp32>, nullptr},
    {"gemm.issue_fraction.tf32", 0.001, 1, 1, issue<DType::tf32>, nullptr},
    {"gemm.issue_fraction.fp16", 0.001, 1, 1, issue<DType::fp16>, nullptr},
    {"gemm.issue_fraction.bf16", 0.001, 1, 1, issue<DType::bf16>, nullptr},
    {"gemm.issue_fraction.fp8", 0.001, 1, 1, issue<DType::fp8>, nullptr},
    {"gemm.sustained_fraction.fp32", 0.001, 1, 1, sustained<DType::fp32>, nullptr},
    {"gemm.sustained_fraction.tf32", 0.001, 1, 1, sustained<DType::tf32>, nullptr},
    {"gemm.sustained_fraction.fp16", 0.001, 1, 1, sustained<DType::fp16>, nullptr},
    {"gemm.sustained_fraction.bf16", 0.001, 1, 1, sustained<DType::bf16>, nullptr},
    {"gemm.sustained_fraction.fp8", 0.001, 1, 1, sustained<DType::fp8>, nullptr},
    {"gemm.wave_rounding", 0, 1, 1, [](T t) -> double& { return t.family->gemm.wave_rounding; },
     nullptr},
    {"gemm.ramp_bytes", 0, 1e5, 1, [](T t) -> double& { return t.family->gemm.ramp_bytes; },
     nullptr},
    {"gemm.memory_fraction", 0.001, 1, 1,
     [](T t) -> double& { return t.family->gemm.memory_fraction; }, nullptr},
    {"gemm.start_us", 0, 1e6, microsecond,
     [](T t) -> double& { return t.family->gemm.start.value; }, nullptr},
    {"memory.streaming_fraction", 0.001, 1, 1, streamed<MemoryAccess::streaming>, nullptr},
    {"memory.reduction_fraction", 0.001, 1, 1, streamed<MemoryAccess::reduction>, nullptr},
    {"memory.gather_fraction", 0.001, 1, 1, streamed<MemoryAccess::gather>, nullptr},
    {"memory.cycles_per_element", 0.01, 100, 1,
     [](T t) -> double& { return t.family->memory.cycles_per_element; }, nullptr},
    {"memory.start_us", 0, 1e6, microsecond,
     [](T t) -> double& { return t.family->memory.start.value; }, nullptr},
    {"context.cuda_context_mib", 0, 1e5, mebibyte, nullptr,
     [](T t) -> Bytes& { return t.family->context.cuda_context; }},
    {"context.cublas_workspace_bytes", 0, 1e10, 1, nullptr,
     [](T t) -> Bytes& { return t.family->context.cublas_workspace; }},
    {"links.nvlink_payload", 0.01, 1, 1, [](T t) -> double& { return t.generation->link_payload; },
     nullptr},
    {"links.nvls_fraction", 0.01, 1, 1, [](T t) -> double& { return t.generation->nvls_fraction; },
     nullptr},
    {"links.p2p", 0.01, 1, 1, [](T t) -> double& { return t.links->host.p2p; }, nullptr},
    {"links.p2p_between_sockets", 0.01, 1, 1,
     [](T t) -> double& { return t.links->host.p2p_between_sockets; }, nullptr},
    {"links.shm", 0.01, 1, 1, [](T t) -> double& { return t.links->host.shm; }, nullptr},
    {"links.shm_shared", 0.01, 1, 1, [](T t) -> double& { return t.links->host.shm_shared; },
     nullptr},
    {"links.ll", 0.01, 1, 1, [](T t) -> double& { return t.links->host.ll; }, nullptr},
    {"links.cpu_hop_us", 0, 1e3, microsecond,
     [](T t) -> double& { return t.links->host.cpu_hop.value; }, nullptr},
}};

Evidence evidence_of(const DeviceProfile& device, std::string_view group) {
  double spread = 0;
  for (const auto& [key, c] : device.constants)
    if (key.starts_with(group) && c.value > 0)
      spread = std::max({spread, c.high / c.value - 1, 1 - c.low / c.value});
  return {device.trust, std::min(spread, 5.0), device.provenance};
}

}  // namespace

bool DeviceProfile::serves(const Gpu& asked) const {
  return asked.id == gpu && (!peer_over_pcie || *peer_over_pcie == asked.peer_over_pcie);
}

bool DeviceProfile::sets(std::string_view group) const {
  return std::any_of(constants.begin(), constants.end(), [&](const auto& c) {
    return c.first.starts_with(group) && c.first.size() > group.size() &&
           c.first[group.size()] == '.';
  });
}

std::span<const DeviceConstant> device_constants() { return constant_rows; }

const DeviceConstant* device_constant(std::string_view key) {
  for (const DeviceConstant& c : constant_rows)
    if (c.key == key) return &c;
  return nullptr;
}

double constant_value(const DeviceConstant& c, const DeviceConstants& target) {
  const double held = c.number ? c.number(target) : static_cast<double>(c.bytes(target).value);
  return held / c.scale;
}

void set_constant(const DeviceConstant& c, const DeviceConstants& target, double value) {
  if (c.number)
    c.number(target) = value * c.scale;
  else
    c.bytes(target) = ceil_bytes(value * c.scale);
}

void lay_over(Profile& calibration, Gpu& gpu, const DeviceProfile& device) {
  require(device.gpu == gpu.id, "a device profile is laid over its own device");
  FamilyCalibration row = calibration.row(gpu.family);
  row.family = gpu.id;
  const DeviceConstants target{&row, nullptr, nullptr};
  for (const auto& [key, c] : device.constants)
    if (!key.starts_with("links.")) set_constant(*device_constant(key), target, c.value);
  if (!device.tiles.empty()) row.gemm.tiles = device.tiles;
  if (device.sets("gemm")) {
    row.gemm.evidence = evidence_of(device, "gemm.");
    row.gemm.power_exponent = 0;
    gpu.efficiency.gemm_peak_fraction.reset();
    gpu.efficiency.gemm_peak_fraction_fp8.reset();
    std::erase_if(calibration.matmuls, [&](const MeasuredMatmul& m) { return m.gpu == gpu.id; });
  }
  if (device.sets("memory")) {
    row.memory.evidence = evidence_of(device, "memory.");
    gpu.efficiency.memory_fraction.reset();
  }
  if (device.sets("context")) row.context.evidence = evidence_of(device, "context.");
  gpu.family = gpu.id;
  calibration.families.push_back(std::move(row));
}

void lay_links_over(LinkCalibration& links, const Gpu& gpu, const DeviceProfile& device) {
  if (!device.sets("links")) return;
  const GpuGeneration& serving = links.generation(gpu.vendor, gpu.compute_capability);
  const DeviceConstants target{
      nullptr, &links,
      &links.generations[static_cast<std::size_t>(&serving - links.generations.data())]};
  for (const auto& [key, c] : device.constants)
    if (key.starts_with("links.")) set_constant(*device_constant(key), target, c.value);
  const Evidence e = evidence_of(device, "links.");
  target.generation->evidence = {e.trust, e.spread, e.provenance};
  links.host.evidence = {e.trust, e.spread, e.provenance};
}

}  // namespace shardwise
