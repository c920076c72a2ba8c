#include "calibrate/device/nvml.hpp"

namespace shardwise {
namespace {

constexpr unsigned sm_clock = 1;
constexpr unsigned memory_clock = 2;
constexpr unsigned most_nvlinks = 36;

// nvmlClocksEventReasons: HW slowdown 0x8, SW thermal 0x20, HW thermal 0x40, HW power brake 0x80.
// The SW power cap, 0x4, is left out: training runs into it as well.
constexpr unsigned long long unhealthy = 0x8 | 0x20 | 0x40 | 0x80;

}  // namespace

Nvml::Nvml() : library_({"libnvidia-ml.so.1"}) {
  library_.resolve(init_, "nvmlInit_v2");
  library_.resolve(shutdown_, "nvmlShutdown");
  library_.resolve(driver_, "nvmlSystemGetDriverVersion");
  library_.resolve(by_bus_, "nvmlDeviceGetHandleByPciBusId_v2");
  library_.resolve(memory_, "nvmlDeviceGetMemoryInfo");
  library_.resolve(clock_, "nvmlDeviceGetClockInfo");
  library_.resolve(max_clock_, "nvmlDeviceGetMaxClockInfo");
  library_.resolve(reasons_, "nvmlDeviceGetCurrentClocksEventReasons",
                   "nvmlDeviceGetCurrentClocksThrottleReasons");
  library_.resolve(power_limit_, "nvmlDeviceGetPowerManagementLimit");
  library_.resolve(pcie_generation_, "nvmlDeviceGetMaxPcieLinkGeneration");
  library_.resolve(pcie_width_, "nvmlDeviceGetMaxPcieLinkWidth");
  library_.resolve(nvlink_state_, "nvmlDeviceGetNvLinkState");
  library_.resolve(common_ancestor_, "nvmlDeviceGetTopologyCommonAncestor");
  usable_ = library_.complete() && init_() == 0;
}

Nvml::~Nvml() {
  if (usable_) shutdown_();
}

std::string Nvml::driver() const {
  char text[96] = "";
  if (!usable_ || driver_(text, sizeof text) != 0) return "unknown";
  return text;
}

std::optional<Nvml::Device> Nvml::by_bus(const std::string& pci_bus_id) const {
  Device device = nullptr;
  if (!usable_ || by_bus_(pci_bus_id.c_str(), &device) != 0) return std::nullopt;
  return device;
}

std::optional<Bytes> Nvml::used(Device device) const {
  Memory memory{};
  if (memory_(device, &memory) != 0) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(memory.used));
}

ClockState Nvml::clock_state(Device device) const {
  ClockState state;
  unsigned long long reasons = 0;
  if (reasons_(device, &reasons) == 0) state.slowed = (reasons & unhealthy) != 0;
  unsigned mhz = 0;
  if (clock_(device, sm_clock, &mhz) == 0) state.sm_mhz = static_cast<int>(mhz);
  return state;
}

std::optional<unsigned> Nvml::ask(Asked function, Device device) const {
  unsigned value = 0;
  if (function(device, &value) != 0) return std::nullopt;
  return value;
}

std::optional<unsigned> Nvml::max_sm_mhz(Device device) const {
  unsigned mhz = 0;
  if (max_clock_(device, sm_clock, &mhz) != 0) return std::nullopt;
  return mhz;
}

std::optional<unsigned> Nvml::memory_mhz(Device device) const {
  unsigned mhz = 0;
  if (max_clock_(device, memory_clock, &mhz) != 0) return std::nullopt;
  return mhz;
}

std::optional<unsigned> Nvml::power_limit_w(Device device) const {
  const auto milliwatts = ask(power_limit_, device);
  if (!milliwatts) return std::nullopt;
  return *milliwatts / 1000;
}

std::optional<unsigned> Nvml::pcie_generation(Device device) const {
  return ask(pcie_generation_, device);
}

std::optional<unsigned> Nvml::pcie_width(Device device) const { return ask(pcie_width_, device); }

std::optional<unsigned> Nvml::nvlinks(Device device) const {
  unsigned up = 0;
  for (unsigned link = 0; link < most_nvlinks; ++link) {
    unsigned active = 0;
    if (nvlink_state_(device, link, &active) == 0 && active == 1) ++up;
  }
  if (up == 0) return std::nullopt;
  return up;
}

std::string Nvml::path(Device a, Device b) const {
  unsigned level = 0;
  if (common_ancestor_(a, b, &level) != 0) return "unknown";
  if (level <= 10) return "PIX";   // one PCIe switch, or one board
  if (level <= 20) return "PXB";   // several PCIe switches
  if (level <= 30) return "PHB";   // one host bridge
  if (level <= 40) return "NODE";  // one NUMA node
  return "SYS";
}

}  // namespace shardwise
