#include "simulator/memory_ledger.hpp"

#include <algorithm>

namespace shardwise {

Holding MemoryLedger::open(std::int64_t bytes, MemoryCategory category, StreamId stream) {
  const auto block = allocator_.allocate(Bytes(bytes), stream);
  if (!block) {
    exhausted_ = true;
    return {};
  }
  now_[static_cast<std::size_t>(category)] += allocator_.size(*block).value;
  recent_peak_ = std::max(recent_peak_, allocator_.allocated());
  if (allocator_.allocated() > peak_) {
    peak_ = allocator_.allocated();
    at_peak_now_ = true;
  }
  return {block, category};
}

void MemoryLedger::close(Holding& holding) {
  if (!holding.block) return;
  if (at_peak_now_) {
    at_peak_ = now_;
    at_peak_now_ = false;
  }
  now_[static_cast<std::size_t>(holding.category)] -= allocator_.size(*holding.block).value;
  allocator_.free(*holding.block);
  holding.block.reset();
}

void MemoryLedger::close_after(Holding& holding, StreamId user) {
  if (holding.block) allocator_.record_stream(*holding.block, user);
  close(holding);
}

MemoryPeak MemoryLedger::peak() const {
  return {peak_, allocator_.peak_reserved(), at_peak_now_ ? now_ : at_peak_};
}

void MemoryLedger::reset_peak() {
  allocator_.reset_peaks();
  peak_ = allocator_.allocated();
  at_peak_ = now_;
  at_peak_now_ = false;
}

Bytes MemoryLedger::take_recent_peak() {
  const Bytes recent = std::max(recent_peak_, allocator_.allocated());
  recent_peak_ = allocator_.allocated();
  return recent;
}

}  // namespace shardwise
