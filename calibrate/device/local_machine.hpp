// The GPUs of this machine as the driver shows them, and how they are joined.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/device/gpu.hpp"
#include "calibrate/measuring/calibration.hpp"

namespace shardwise {

struct LocalMachine {
  Nvml nvml;
  std::vector<std::unique_ptr<Gpu>> gpus;
  MachineFacts facts;  // without the mode
};

// Nothing is allocated and no context made yet. A driver that is not there, too old or without a
// GPU is a problem of kind file, whose sentence says so.
Result<std::unique_ptr<LocalMachine>> find_local_machine();

GpuTraits traits_of(const Gpu& gpu);

}  // namespace shardwise
