#include "simulator/memory/memory_ledger.hpp"

#include <algorithm>

namespace shardwise {

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
  const Bytes recent = allocator_.peak_allocated();
  allocator_.reset_peaks();
  return recent;
}

}  // namespace shardwise
