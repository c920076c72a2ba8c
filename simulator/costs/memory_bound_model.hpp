// MemoryBoundModel: kernels whose time is that of the bytes they move.
//
//   time = kernels x start + bytes / (fraction x memory bandwidth)
//
// The fraction depends on how memory is walked (MemoryAccess); `start` also covers the gap between
// dependent kernels on one stream. Bytes that stay in the L2 cache are counted as if they did not.
#pragma once

#include <array>

#include "catalog/profile.hpp"

namespace shardwise {

class MemoryBoundModel {
 public:
  MemoryBoundModel(const Gpu& gpu, const Profile& profile);

  // REQUIRES moved >= 0 and kernels >= 0: bytes read plus bytes written by all kernels together.
  Seconds time(Bytes moved, int kernels = 1, MemoryAccess access = MemoryAccess::streaming) const {
    return double(kernels) * start_ + moved / bandwidth_[static_cast<std::size_t>(access)];
  }
  BytesPerSecond bandwidth(MemoryAccess access) const {
    return bandwidth_[static_cast<std::size_t>(access)];
  }
  Seconds start() const { return start_; }

 private:
  std::array<BytesPerSecond, memory_access_count> bandwidth_{};
  Seconds start_;
};

}  // namespace shardwise
