// BackwardStep: an optimizer that steps inside backward, tensor by tensor (LOMO, arXiv 2306.09782).
//
// Its hook runs when the next gradient is there (lomo.py, fuse_update), so two gradients meet; the
// one that is stepped goes when it is widened, or is the first of the wide values.
#pragma once

#include <cstdint>

#include "simulator/memory/memory_ledger.hpp"

namespace shardwise {

class BackwardStep {
 public:
  explicit BackwardStep(MemoryLedger& ledger) : ledger_(ledger) {}

  // A gradient of `bytes` has just been made; stepping it will take `wide` bytes.
  void make(std::int64_t bytes, std::int64_t wide) {
    Holding made = ledger_.open(bytes, MemoryCategory::gradients);
    finish();
    waiting_ = made;
    wide_ = wide;
  }

  // Steps the gradient that waits, if one does.
  void finish() {
    if (!waiting_.block) return;
    ledger_.close(waiting_);
    ledger_.touch(wide_, MemoryCategory::gradients);
  }

 private:
  MemoryLedger& ledger_;
  Holding waiting_;
  std::int64_t wide_ = 0;  // bytes
};

}  // namespace shardwise
