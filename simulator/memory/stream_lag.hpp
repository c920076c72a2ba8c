// StreamLag: blocks that are free but that the GPU, behind the CPU, has not done with.
//
// The CPU issues kernels ahead of the GPU, up to the depth of the launch queue. A tensor that a
// collective read on NCCL's stream is marked with Tensor.record_stream; freed, its block waits
// until the GPU is past that point (pytorch/torchtitan docs/composability.md on
// TORCH_NCCL_AVOID_RECORD_STREAMS; pytorch/pytorch#111431). Without the mark it goes back at once.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>

#include "simulator/memory/memory_ledger.hpp"

namespace shardwise {

// How the CPU leads while it issues a step.
struct HostLead {
  double done_per_issued = 1;  // kernels that the GPU gets done while one is issued; at most 1
  int launch_queue = 0;        // kernels that may wait
  double stalled = 0;          // issued while the GPU waits for the next stage's first receives
  double ahead = 0;            // led by when the microbatches begin that are played
  friend bool operator==(const HostLead&, const HostLead&) = default;
};

class StreamLag {
 public:
  StreamLag(MemoryLedger& ledger, StreamId user, HostLead lead)
      : ledger_(ledger), user_(user), lead_(lead) {}

  // Frees what the collective on the user's stream still reads: an event is recorded there
  // (c10/cuda/CUDACachingAllocator.cpp, insert_events).
  void release(Holding& holding) {
    advance(1);
    ledger_.close_after(holding, user_);
    waiting_.emplace_back(issued_, ledger_.mark(user_));
  }

  // The CPU has issued `kernels` more.
  void advance(int kernels) {
    issued_ += kernels;
    const double done = issued_ > stalled_until_ ? lead_.done_per_issued * kernels : 0;
    done_ = std::max(done_ + done, issued_ - lead_.launch_queue);
    done_ = std::min(done_, issued_);
    while (!waiting_.empty() && waiting_.front().first <= done_) {
      ledger_.done(user_, waiting_.front().second);
      waiting_.pop_front();
    }
  }

  // The GPU waits in a send, while the CPU goes on.
  void stall() { stalled_until_ = issued_ + lead_.stalled; }

  // Microbatches that are not played have let the CPU lead.
  void begin() { stalled_until_ = issued_ + lead_.ahead; }

  // The CPU waits for the GPU.
  void catch_up() {
    stalled_until_ = 0;
    done_ = issued_;
    advance(0);
  }

 private:
  MemoryLedger& ledger_;
  StreamId user_;
  HostLead lead_;
  std::deque<std::pair<double, StreamMark>> waiting_;
  double issued_ = 0, done_ = 0, stalled_until_ = 0;
};

}  // namespace shardwise
