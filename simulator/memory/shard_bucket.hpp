// ShardBucket: the gradients that DeepSpeed's ZeRO-3 has whole between autograd and its shards.
//
// A gradient that the bucket has room for is copied into it as it is made; a longer one waits as it
// is. Before one that does not fit any more, and as the pass ends, all that wait are reduced
// (deepspeedai/DeepSpeed v0.9.5 to @edaa722126 runtime/zero/stage3.py,
// reduce_independent_p_g_buckets_and_remove_grads and __add_grad_to_ipg_bucket, with
// contiguous_gradients): several through one more flat tensor of them all, on the stream of the
// reductions where that is one of its own, a single one as it is where the ranks divide it
// (__avg_scatter_grads; runtime/comm/coalesced_collectives.py, reduce_scatter_coalesced). A rank's
// part on its way to an optimizer on the host is brought back, and its norm is taken of a copy of 8
// bytes, of no more than 250,000,000 elements, before it is widened (partition_grads,
// _constant_buffered_norm2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/memory/memory_ledger.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

class ShardBucket {
 public:
  ShardBucket(const Workload& w, const ParallelPlan& plan, MemoryLedger& ledger)
      : ledger_(ledger),
        used_(deepspeed_stage_3(w.framework, plan)),
        to_host_(plan.offload.optimizer),
        ranks_(std::max(plan.shard_ranks(), 1)),
        room_(w.framework.gradient_bucket_at(plan.zero_stage).value),
        stream_(w.framework.gradients.overlap_reduce_at_stage_3 ? reduce_stream : StreamId{}) {}

  bool used() const { return used_; }
  // One more, of `elements` with `each` bytes; `stepped`: the optimizer steps after this pass.
  void add(std::int64_t elements, double each, bool stepped);
  // The pass is through.
  void reduce();

 private:
  void inspect_part() const;

  MemoryLedger& ledger_;
  bool used_, to_host_;
  int ranks_;
  std::int64_t room_;  // bytes
  StreamId stream_;
  std::vector<Holding> waiting_;  // that the bucket has no room for
  int members_ = 0;
  bool whole_parts_ = true;   // of the last member: the ranks divide it
  std::int64_t bytes_ = 0;    // of all members
  std::int64_t longest_ = 0;  // elements of a rank's part of a member
  bool stepped_ = false;
};

}  // namespace shardwise
