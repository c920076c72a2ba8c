#include "simulator/costs/memory_bound_model.hpp"

#include <algorithm>

namespace shardwise {

MemoryBoundModel::MemoryBoundModel(const Gpu& gpu, const Profile& profile) {
  const MemoryCalibration& c = profile.row(gpu.family).memory;
  start_ = c.start;
  for (std::size_t i = 0; i < memory_access_count; ++i)
    bandwidth_[i] = BytesPerSecond(c.fraction[i] * gpu.memory_bandwidth.value);
  // A plain copy measured on this very GPU is a floor: element-wise kernels are no slower.
  const double copy = gpu.efficiency.memory_fraction.value_or(0) * gpu.memory_bandwidth.value;
  BytesPerSecond& streaming = bandwidth_[static_cast<std::size_t>(MemoryAccess::streaming)];
  streaming = std::max(streaming, BytesPerSecond(std::min(copy, gpu.memory_bandwidth.value)));
}

}  // namespace shardwise
