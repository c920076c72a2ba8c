// NVML, the driver's library of facts: clocks, why they are low, memory in use, PCIe, topology. It
// comes with the driver and is looked for when the program runs. NVIDIA's header is not needed: the
// few functions are declared here as NVML's reference manual has them (their names and types are
// kept from driver to driver).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "calibrate/device/shared_library.hpp"
#include "calibrate/measuring/bench_device.hpp"
#include "catalog/units.hpp"

namespace shardwise {

class Nvml {
 public:
  using Device = void*;
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool usable() const { return usable_; }
  const std::string& missing() const { return library_.missing(); }
  std::string driver() const;
  std::optional<Device> by_bus(const std::string& pci_bus_id) const;

  // Nothing where the driver does not tell.
  std::optional<Bytes> used(Device device) const;
  ClockState clock_state(Device device) const;
  std::optional<unsigned> max_sm_mhz(Device device) const;
  std::optional<unsigned> memory_mhz(Device device) const;
  std::optional<unsigned> power_limit_w(Device device) const;
  std::optional<unsigned> pcie_generation(Device device) const;  // the most that slot and GPU have
  std::optional<unsigned> pcie_width(Device device) const;
  std::optional<unsigned> nvlinks(Device device) const;  // that are up
  // Where the paths of two GPUs meet, in nvidia-smi's words: PIX, PXB, PHB, NODE, SYS.
  std::string path(Device a, Device b) const;

 private:
  using Asked = int (*)(Device, unsigned*);
  std::optional<unsigned> ask(Asked function, Device device) const;

  struct Memory {
    unsigned long long total, free, used;
  };
  SharedLibrary library_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*by_bus_)(const char*, Device*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
  int (*clock_)(Device, unsigned, unsigned*) = nullptr;
  int (*max_clock_)(Device, unsigned, unsigned*) = nullptr;
  int (*reasons_)(Device, unsigned long long*) = nullptr;
  Asked power_limit_ = nullptr;
  Asked pcie_generation_ = nullptr;
  Asked pcie_width_ = nullptr;
  int (*nvlink_state_)(Device, unsigned, unsigned*) = nullptr;
  int (*common_ancestor_)(Device, Device, unsigned*) = nullptr;
  bool usable_ = false;
};

}  // namespace shardwise
