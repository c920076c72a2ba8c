// MemoryBoundModel: kernels whose time is that of the bytes they move.
//
//   time = kernels x start + the longer of
//            hot / cache rate + (bytes - hot) / (fraction x memory bandwidth)
//            elements x cycles / (multiprocessors x clock), of what is taken one by one
//            cycles of a lane / (lanes x clock), which is half the fp32 rate
//
// The fraction depends on how memory is walked (MemoryAccess); `start` also covers the gap between
// dependent kernels on one stream. `hot` bytes were written by the kernel before and are still in
// the L2 cache: all but the cold ones where a kernel's bytes fit into it, fewer as they outgrow it.
#pragma once

#include <array>
#include <cstdint>

#include "catalog/profile.hpp"

namespace shardwise {

class MemoryBoundModel {
 public:
  MemoryBoundModel(const Gpu& gpu, const Profile& profile);

  // `moved`: read plus written by all kernels together. `cold`: of these, read from tensors that
  // were made long before, as what autograd saved. `singly` and `lanes`: see MemoryWork.
  // REQUIRES none below 0.
  Seconds time(Bytes moved, int kernels = 1, MemoryAccess access = MemoryAccess::streaming,
               Bytes cold = Bytes(0), std::int64_t singly = 0, const LaneSteps& lanes = {}) const;
  // Of bytes that were written, the share that is in the cache after so many others.
  double cached_share(double bytes_since) const;
  BytesPerSecond bandwidth(MemoryAccess access) const {
    return bandwidth_[static_cast<std::size_t>(access)];
  }
  Seconds start() const { return start_; }

 private:
  Seconds moving(Bytes moved, int kernels, std::size_t access, Bytes cold) const;

  std::array<BytesPerSecond, memory_access_count> bandwidth_{};
  std::array<BytesPerSecond, memory_access_count> cache_rate_{};
  double all_hit_ = 0, none_hits_ = 0;  // [B]; both 0 where the cache is not known
  Seconds start_;
  double element_s_ = 0;  // [s] of one that is taken alone, all multiprocessors at work
  double cycle_s_ = 0;    // [s] of one lane's cycle, all lanes at work
  LaneLoops loops_;
};

}  // namespace shardwise
