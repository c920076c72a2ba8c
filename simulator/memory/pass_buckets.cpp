#include "simulator/memory/pass_buckets.hpp"

#include <algorithm>

#include "simulator/memory/run_buffers.hpp"
#include "simulator/memory/stage_holdings.hpp"

namespace shardwise {

void PassBuckets::begin(const LayerState& total) {
  const Framework& f = w_->framework;
  for (const std::int64_t bytes : pass_buffers(*w_, *plan_, total))
    buffers_.push_back(ledger_->open(bytes, MemoryCategory::communication));
  const int ranks = plan_->data * plan_->context;
  const bool copies = plan_->zero_stage == 2 && f.gradients.stage_2_all_reduces && ranks > 1;
  room_ = copies && !buffers_.empty() ? f.gradient_bucket_at(plan_->zero_stage).value : 0;
  share_ = total.unsharded_gradients / std::max(ranks, 1);
  filled_ = sent_ = 0;
}

void PassBuckets::fill(std::int64_t bytes) {
  if (room_ <= 0) return;
  filled_ += bytes;
  for (; filled_ > room_; filled_ -= room_) reduce(room_);
}

void PassBuckets::end() {
  if (filled_ > 0) reduce(filled_);
  filled_ = 0;
  for (Holding& h : buffers_) ledger_->close(h);
  buffers_.clear();
}

void PassBuckets::reduce(std::int64_t bytes) {
  const std::int64_t first = sent_, last = sent_ + bytes - 1;
  sent_ += bytes;
  if (share_ <= 0 || first / share_ == last / share_) return;  // a single slice
  const Framework& f = w_->framework;
  const bool overlaps = f.gradients.overlap_reduce_at_stage_2.value_or(f.gradients.overlap_reduce);
  Holding flat =
      ledger_->open(bytes, MemoryCategory::communication, overlaps ? reduce_stream : StreamId{});
  ledger_->close(flat);
}

}  // namespace shardwise
