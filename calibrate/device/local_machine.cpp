#include "calibrate/device/local_machine.hpp"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <thread>

namespace shardwise {
namespace {

template <class Number>
void tell(Facts& facts, const char* key, const std::optional<Number>& value) {
  if (value) facts[key] = std::to_string(*value);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(digits[byte >> 4U]);
    text.push_back(digits[byte & 15U]);
  }
  return text;
}

std::string bus_of(int gpu) {
  char text[32] = "";
  check(cudaDeviceGetPCIBusId(text, sizeof text, gpu), "asking for the PCI bus");
  return text;
}

// The kernel names PCI devices in lower case, and says -1 where there is one NUMA node.
std::optional<int> numa_node(std::string bus) {
  std::transform(bus.begin(), bus.end(), bus.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file("/sys/bus/pci/devices/" + bus + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

Facts facts_of(const Nvml& nvml, int gpu) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu), "asking for properties");
  const std::string bus = bus_of(gpu);
  Facts facts{{"name", properties.name},
              {"uuid", uuid_text(properties.uuid)},
              {"pci_bus", bus},
              {"compute_capability",
               std::to_string(properties.major) + "." + std::to_string(properties.minor)},
              {"memory_bytes", std::to_string(properties.totalGlobalMem)},
              {"multiprocessors", std::to_string(properties.multiProcessorCount)},
              {"l2_bytes", std::to_string(properties.l2CacheSize)}};
  tell(facts, "numa_node", numa_node(bus));
  if (const auto device = nvml.by_bus(bus)) {
    tell(facts, "max_sm_mhz", nvml.max_sm_mhz(*device));
    tell(facts, "max_memory_mhz", nvml.memory_mhz(*device));
    tell(facts, "power_limit_w", nvml.power_limit_w(*device));
    tell(facts, "pcie_generation", nvml.pcie_generation(*device));
    tell(facts, "pcie_width", nvml.pcie_width(*device));
    tell(facts, "nvlinks", nvml.nvlinks(*device));
  }
  return facts;
}

Facts link_of(const Nvml& nvml, int a, int b) {
  int access = 0, rank = 0;
  check(cudaDeviceCanAccessPeer(&access, a, b), "asking for peer access");
  Facts facts{{"a", std::to_string(a)},
              {"b", std::to_string(b)},
              {"peer_access", access == 1 ? "yes" : "no"}};
  if (cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, a, b) == cudaSuccess)
    facts["performance_rank"] = std::to_string(rank);
  const auto left = nvml.by_bus(bus_of(a)), right = nvml.by_bus(bus_of(b));
  if (left && right) facts["path"] = nvml.path(*left, *right);
  return facts;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

std::string version_text(int cuda) {
  return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

Facts machine_facts(const Nvml& nvml) {
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "asking for the CUDA version");
  check(cudaDriverGetVersion(&driver), "asking for the CUDA version");
  return {{"version", SHARDWISE_VERSION},
          {"date", today()},
          {"driver", nvml.driver()},
          {"cuda_runtime", version_text(runtime)},
          {"cuda_driver", version_text(driver)},
          {"cpu", cpu_name()},
          {"cpu_threads", std::to_string(std::thread::hardware_concurrency())}};
}

Problem no_gpu(const std::string& why) {
  return {ProblemKind::file, "GPUs",
          "no NVIDIA GPU can be used here: " + why +
              " (logs of nccl-tests, nvbandwidth and others: shardwise calibrate import FILE)"};
}

}  // namespace

Result<std::unique_ptr<LocalMachine>> find_local_machine() {
  int count = 0;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return no_gpu("no NVIDIA driver is loaded");
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    return no_gpu(cudaGetErrorString(error));
  if (count == 0) return no_gpu("the driver shows none");
  try {
    auto machine = std::make_unique<LocalMachine>();
    machine->facts.facts = machine_facts(machine->nvml);
    for (int gpu = 0; gpu < count; ++gpu) {
      machine->gpus.push_back(std::make_unique<Gpu>(gpu, machine->nvml));
      machine->facts.gpus.push_back(facts_of(machine->nvml, gpu));
      for (int other = 0; other < gpu; ++other)
        machine->facts.links.push_back(link_of(machine->nvml, other, gpu));
    }
    return machine;
  } catch (const CudaFailure& failure) {
    return no_gpu(failure.why);
  }
}

GpuTraits traits_of(const Gpu& gpu) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu.index()), "asking for properties");
  return {gpu.compute_capability(), Bytes(static_cast<std::int64_t>(properties.totalGlobalMem))};
}

}  // namespace shardwise
