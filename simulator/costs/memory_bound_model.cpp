#include "simulator/costs/memory_bound_model.hpp"

#include <algorithm>

namespace shardwise {
namespace {

constexpr auto streams = static_cast<std::size_t>(MemoryAccess::streaming);

}  // namespace

MemoryBoundModel::MemoryBoundModel(const Gpu& gpu, const Profile& profile)
    : loops_(profile.lane_loops) {
  const MemoryCalibration& c = profile.row(gpu.family).memory;
  start_ = c.start;
  for (std::size_t i = 0; i < memory_access_count; ++i)
    bandwidth_[i] = BytesPerSecond(c.fraction[i] * gpu.memory_bandwidth.value);
  // A plain copy measured on this very GPU is a floor: element-wise kernels are no slower.
  const double copy = gpu.efficiency.memory_fraction.value_or(0) * gpu.memory_bandwidth.value;
  BytesPerSecond& streaming = bandwidth_[streams];
  streaming = std::max(streaming, BytesPerSecond(std::min(copy, gpu.memory_bandwidth.value)));

  if (gpu.sm_count > 0 && gpu.boost_clock_mhz > 0)
    element_s_ = c.cycles_per_element / (gpu.sm_count * gpu.boost_clock_mhz * 1e6);
  // A lane multiplies and adds once a cycle.
  if (const auto fp32 = gpu.rate(DType::fp32)) cycle_s_ = 2 / fp32->value;

  if (!c.cache || gpu.sm_count == 0) return;
  const auto cache = static_cast<double>(gpu.l2.value);
  all_hit_ = c.cache->full * cache;
  none_hits_ = c.cache->empty * cache;
  // Kernels that walk memory in other ways are slower than streaming ones there too.
  const double all = gpu.sm_count * c.cache->each.value;
  for (std::size_t i = 0; i < memory_access_count; ++i)
    cache_rate_[i] =
        std::max(bandwidth_[i], BytesPerSecond(all * c.fraction[i] / c.fraction[streams]));
}

double MemoryBoundModel::cached_share(double bytes_since) const {
  if (bytes_since >= none_hits_) return 0;
  return std::min(1.0, (none_hits_ - bytes_since) / (none_hits_ - all_hit_));
}

Seconds MemoryBoundModel::time(Bytes moved, int kernels, MemoryAccess access, Bytes cold,
                               std::int64_t singly, const LaneSteps& lanes) const {
  const Seconds moves = moving(moved, kernels, static_cast<std::size_t>(access), cold);
  const Seconds indexes(element_s_ * static_cast<double>(singly));
  const Seconds computes(cycle_s_ * loops_.cycles(lanes));
  return double(kernels) * start_ + std::max({moves, indexes, computes});
}

Seconds MemoryBoundModel::moving(Bytes moved, int kernels, std::size_t i, Bytes cold) const {
  const Seconds from_memory = moved / bandwidth_[i];
  if (kernels <= 0) return from_memory;
  const double share = cached_share(static_cast<double>(moved.value) / kernels);
  if (share == 0) return from_memory;
  const double hot = share * static_cast<double>(std::max<std::int64_t>(0, (moved - cold).value));
  const double rest = static_cast<double>(moved.value) - hot;
  return Seconds(hot / cache_rate_[i].value) + Seconds(rest / bandwidth_[i].value);
}

}  // namespace shardwise
