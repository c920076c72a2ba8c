// CollectiveCall: one collective over the ranks of a point, its buffers allocated.
#pragma once

#ifdef SHARDWISE_WITH_NCCL

#include <vector>

#include "calibrate/device/communicators.hpp"
#include "calibrate/device/rank_group.hpp"

namespace shardwise {

class CollectiveCall {
 public:
  // `bytes` as nccl-tests counts them: of the larger of a rank's two buffers. Throws CudaFailure.
  CollectiveCall(RankGroup& group, const BenchPoint& point);

  void enqueue(const std::vector<cudaStream_t>& streams) const;  // one per GPU of gpus()

  const std::vector<Gpu*>& gpus() const { return gpus_; }
  int ranks() const { return all_.ranks; }
  int rank(std::size_t gpu) const { return all_.first_rank + static_cast<int>(gpu); }
  char* from(std::size_t gpu) const { return from_[gpu].as<char>(); }
  char* to(std::size_t gpu) const { return to_[gpu].as<char>(); }
  std::size_t elements(int parts) const;  // of the larger buffer, divided

 private:
  const Communicators& all_;
  void (*call_)(const CollectiveCall&, std::size_t gpu, ncclComm_t, cudaStream_t);
  std::int64_t bytes_;
  std::vector<Gpu*> gpus_;
  std::vector<GpuBuffer> from_, to_;
};

}  // namespace shardwise

#endif
