// A GPU as its datasheet gives it. Dense rates, one-direction links, nominal memory.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "catalog/dtype.hpp"
#include "catalog/provenance.hpp"
#include "catalog/units.hpp"

namespace shardwise {

enum class PeerAccess { yes, no, unknown };  // direct GPU-to-GPU copies over PCIe

// Who buys the card; a bare memory size ("24GB") lists its cards in this order, then by id.
enum class Market { consumer, workstation, datacenter };

// What was measured on a GPU of this kind and published (or by `shardwise calibrate`), as
// fractions of the datasheet. Absent members fall back to the architecture's default row.
struct GpuEfficiency {
  std::optional<double> gemm_peak_fraction;  // best GEMM rate found / dense rate (bf16 or fp16)
  std::optional<double> gemm_peak_fraction_fp8;
  std::optional<double> memory_fraction;  // large-copy rate / memory bandwidth
  Trust trust = Trust::assumed;
  Provenance provenance;
};

struct Gpu {
  std::string id;    // "rtx-4090": the file name without .json
  std::string name;  // "GeForce RTX 4090"
  std::vector<std::string> aliases;
  std::vector<std::string> boards;  // names of what carries several of it,
  int gpus_per_board = 1;           // so many
  std::string vendor;               // "nvidia" | "amd" | "intel"
  std::string architecture;         // "Ada Lovelace"
  std::string family;  // "ada-geforce": shares per-SM rates, tiles and default efficiencies
  Market market = Market::datacenter;
  bool stands_for_size = true;           // listed where somebody asks for "24GB"
  std::string default_node;              // id in nodes/ it is usually sold in; empty: any box
  Bytes memory;                          // nominal capacity
  std::optional<Bytes> memory_reported;  // what the driver reports as total (nvidia-smi)
  std::optional<Bytes> memory_offered;   // the total that CUDA offers a process: the "total
                                         // capacity" of PyTorch's out-of-memory message
  Bytes memory_taken;                    // by other programs: a desktop, WSL, a server of models
  bool shares_host_memory = false;       // the CPU's memory is the same: nowhere to offload to
  BytesPerSecond memory_bandwidth;
  Bytes l2;
  int sm_count = 0;                        // compute units on AMD
  double boost_clock_mhz = 0;              // [MHz]
  std::optional<double> tensor_clock_mhz;  // [MHz] where the tensor rates assume another clock
  double power_w = 0;                      // [W] of the board; of the module, where a CPU shares it
  std::optional<double> power_limit_w;     // [W] what its owner holds it to (nvidia-smi -pl)
  // [W] what it may draw; 0 where the board's limit is not known.
  double allowed_w() const {
    return power_limit_w && power_w > 0 ? std::min(*power_limit_w, power_w) : power_w;
  }
  double compute_capability = 0;  // 8.9; 0 where CUDA does not apply
  // Whether PyTorch's builds for CUDA or ROCm run there, which the framework rows are of.
  bool runs_cuda_or_rocm() const { return vendor != "intel"; }
  int pcie_generation = 0;
  int pcie_lanes = 0;
  BytesPerSecond nvlink;                    // all links of one GPU, one direction; 0: none.
                                            // Infinity Fabric and RoCE scale-up count as such.
  std::optional<BytesPerSecond> host_link;  // one direction, where it is not PCIe (NVLink-C2C)
  // Where the CPU is a part of the module (Grace): its time to issue an operator over an x86
  // server's, and that of a fused module's kernel (KernelStyle::fused), whichever framework issues.
  double host_slowdown = 1;
  std::optional<Seconds> host_per_fused_kernel;
  // Its tensor rates are held far below what its clock and power allow (H20, for export): under
  // load it loses none of them.
  bool capped_rates = false;
  PeerAccess peer_over_pcie = PeerAccess::unknown;
  std::array<std::optional<FlopsPerSecond>, dtype_count> dense_rate{};  // fp16: fp32 accumulate
  // No framework accumulates in fp16, so no forecast reads these two: datasheets name them first,
  // and the catalog's tests hold the rates above against them.
  std::optional<FlopsPerSecond> fp16_accumulate_rate;      // fp16 and accumulate in fp16
  std::optional<FlopsPerSecond> fp8_fp16_accumulate_rate;  // fp8 and accumulate in fp16
  std::string rate_conflict;  // why a rate is not SMs x clock x per-SM rate, which tests demand
  std::vector<std::string> notes;
  GpuEfficiency efficiency;
  Provenance provenance;

  // What a process can hold before the driver refuses, CUDA context included: the best total read,
  // without what other programs have taken.
  Bytes usable_memory() const {
    return memory_offered.value_or(memory_reported.value_or(memory)) - memory_taken;
  }
  std::optional<FlopsPerSecond> rate(DType d) const {
    return dense_rate[static_cast<std::size_t>(d)];
  }
};

}  // namespace shardwise
