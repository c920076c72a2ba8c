// RankGroup: the GPUs that measure together. One process may have all of them, or, on several
// nodes, each process one.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "calibrate/device/gpu_benches.hpp"
#include "calibrate/measuring/rendezvous.hpp"

namespace shardwise {

struct Communicators;  // of NCCL, one for each of this process's GPUs in it

class RankGroup {
 public:
  // One process with all GPUs; or with one of them, rank `place.rank`, and the others elsewhere.
  explicit RankGroup(std::vector<Gpu*> gpus);
  RankGroup(Gpu& gpu, const RankPlace& place, Rendezvous& others);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  const std::vector<Gpu*>& gpus() const { return gpus_; }
  int ranks() const { return ranks_; }
  Rendezvous* others() const { return others_; }

  // Of the first `ranks` GPUs; made once. Throws CudaFailure.
  const Communicators& communicators(int ranks);

  // What the driver shows as taken by it on the first GPU, its first collective included.
  std::optional<Bytes> communicator_bytes(int ranks);

  // The sample that all processes agree on: the worst status, the longest time.
  Sample agreed(Sample mine) const;
  Prepared agreed(Prepared mine) const;

 private:
  std::vector<Gpu*> gpus_;
  int ranks_;
  int first_rank_ = 0;
  Rendezvous* others_ = nullptr;
  std::map<int, std::unique_ptr<Communicators>> made_;
};

RunOnce prepare_collective(RankGroup& group, const BenchPoint& point);
RunOnce prepare_gemm_beside(RankGroup& group, const BenchPoint& point);
RunOnce prepare_peer_copy(RankGroup& group, const BenchPoint& point);
RunOnce prepare_copy_together(RankGroup& group, const BenchPoint& point);

// All GPUs together, for the measuring loop. `group` must outlive it.
BenchDevice machine_device(RankGroup& group);

}  // namespace shardwise
