// PassBuckets: the gradient buckets that DeepSpeed's ZeRO-1 and 2 hold during a backward pass.
//
// They are made as the pass begins and released as it ends (deepspeedai/DeepSpeed @edaa722126
// runtime/zero/stage_1_and_2.py:828-834, 960 and 2491-2514: _release_ipg_buffers, setup_buckets).
// Gradients are copied into one as they are made. Where every rank reduces all of it (:1395-1440,
// use_multi_rank_bucket_allreduce) its slices, one for each rank whose share it holds a part of, go
// through one flat copy (:1841, flatten: of a single slice that is no copy), on the stream of the
// reduction where that overlaps.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/memory/memory_ledger.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/parameter_state.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

class PassBuckets {
 public:
  PassBuckets(const Workload& w, const ParallelPlan& plan, MemoryLedger& ledger)
      : w_(&w), plan_(&plan), ledger_(&ledger) {}

  // A pass begins; `total` is of all layers on the rank.
  void begin(const LayerState& total);
  // So many bytes of gradients, as backward makes them, have come in.
  void fill(std::int64_t bytes);
  void end();

 private:
  // What the bucket holds is reduced.
  void reduce(std::int64_t bytes);

  const Workload* w_;
  const ParallelPlan* plan_;
  MemoryLedger* ledger_;
  std::vector<Holding> buffers_;
  std::int64_t room_ = 0;    // bytes of a bucket; none: nothing is copied
  std::int64_t share_ = 0;   // bytes of a rank's part of the gradients
  std::int64_t filled_ = 0;  // of the bucket
  std::int64_t sent_ = 0;    // bytes of the pass that have been reduced
};

}  // namespace shardwise
