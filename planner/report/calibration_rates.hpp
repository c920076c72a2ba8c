// The rates that a device profile tells, each beside its GPU's datasheet: how profiles of different
// GPUs are held against each other, whose own times say more of the cards than of the runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/device_profile.hpp"
#include "planner/report/json_parts.hpp"

namespace shardwise {

struct DeviceRate {
  std::string name;  // a constant's key, or a curve's subject: "all_reduce, 8 GPUs"
  std::string unit;  // "TFLOP/s" | "GB/s"
  double rate = 0;
  std::string port;                 // what the datasheet has of it: "NVLink"; empty: nothing
  std::optional<double> datasheet;  // in the same unit
};

// Constants that are fractions of a rate of the datasheet, then every curve that grows: the rate of
// its largest sizes, collectives by their bus bandwidth. `host`: for PCIe's line rate.
std::vector<DeviceRate> device_rates(const DeviceProfile& profile, const Gpu& gpu,
                                     const HostLinks& host);

struct ProfiledGpu {
  const DeviceProfile& profile;
  const Gpu& gpu;
};
// One row for each rate of either; those of one name side by side.
std::string device_rates_text(const ProfiledGpu& a, const ProfiledGpu& b, const HostLinks& host);
Json device_rates_json(const ProfiledGpu& a, const ProfiledGpu& b, const HostLinks& host);

}  // namespace shardwise
