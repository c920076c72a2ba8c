// MemoryLedger: every byte that a rank's tensors hold, filed by category, over a training run.
//
// An account over the caching allocator: what is opened is closed, block for block, so that after
// a step the transient categories are back where they were. The breakdown at the moment of the
// peak sums to the peak, to the byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/graphs/memory_category.hpp"
#include "simulator/memory/caching_allocator.hpp"

namespace shardwise {

struct MemoryPeak {
  Bytes allocated;              // torch.cuda.max_memory_allocated
  Bytes reserved;               // torch.cuda.max_memory_reserved
  MemoryBreakdown breakdown{};  // of `allocated`
};

// One account entry; default-constructed: nothing held.
struct Holding {
  MaybeBlock block;
  MemoryCategory category = MemoryCategory::temporaries;
};

class MemoryLedger {
 public:
  // `capacity`: what CUDA can give to the allocator; none: no limit. `raises`: what it misses is
  // added to it.
  explicit MemoryLedger(const AllocatorSettings& settings,
                        std::optional<Bytes> capacity = std::nullopt, bool raises = false)
      : allocator_(settings, capacity), raises_(raises && capacity) {}

  Holding open(std::int64_t bytes, MemoryCategory category, StreamId stream = {});
  // Out of memory, and no raise: an empty holding, and exhausted() from then on. Closing one does
  // nothing.
  void close(Holding& holding);
  // The same two, set down where they are called (CachingAllocator::allocate_here).
  Holding open_here(std::int64_t bytes, MemoryCategory category, StreamId stream = {});
  void close_here(Holding& holding);
  // Opens and closes at once.
  void touch(std::int64_t bytes, MemoryCategory category) {
    if (!allocator_.touch_is_nothing(Bytes(bytes), peak_)) touch_in_full(bytes, category);
  }
  // The same for a tensor that `user` still reads (record_stream): it counts as free at once, but
  // its block is not used again before done(user, a mark at or after this).
  void close_after(Holding& holding, StreamId user);
  StreamMark mark(StreamId user) const { return allocator_.mark(user); }
  void done(StreamId user, StreamMark until) { allocator_.stream_done(user, until); }

  Bytes allocated() const { return allocator_.allocated(); }
  Bytes reserved() const { return allocator_.reserved(); }
  // How often an allocation has waited for the GPU and given back what is cached.
  std::int64_t retries() const { return allocator_.alloc_retries(); }
  bool exhausted() const { return exhausted_; }
  std::optional<Bytes> capacity() const { return allocator_.capacity(); }
  bool gave_back() const { return allocator_.counters().device_frees > 0; }
  // Whether nothing had been given back to CUDA when the capacity was raised last.
  bool kept_all() const { return kept_all_; }
  Bytes most_allocated() const { return allocator_.peak_allocated(); }
  Bytes bytes_of(const Holding& holding) const {
    return holding.block ? allocator_.size(*holding.block) : Bytes();
  }
  const MemoryBreakdown& breakdown() const { return now_; }
  // Keeps what is held now, by category; remembered() tells it later.
  void remember() { remembered_ = now_; }
  const MemoryBreakdown& remembered() const { return remembered_; }
  MemoryPeak peak() const;
  // Forgets the peaks so far; what is held stays held.
  void reset_peak();
  // The most that was allocated at once since the last call. REQUIRES that nobody asks for peak().
  Bytes take_recent_peak();

 private:
  void touch_in_full(std::int64_t bytes, MemoryCategory category);

  CachingAllocator allocator_;
  MemoryBreakdown now_{};
  MemoryBreakdown remembered_{};
  MemoryBreakdown at_peak_{};  // not yet, while what is held now is the peak
  Bytes peak_;
  bool at_peak_now_ = false;
  bool raises_;
  bool kept_all_ = true;
  bool exhausted_ = false;
};

inline Holding MemoryLedger::open(std::int64_t bytes, MemoryCategory category, StreamId stream) {
  return open_here(bytes, category, stream);
}
inline void MemoryLedger::close(Holding& holding) { close_here(holding); }

[[gnu::always_inline]] inline Holding MemoryLedger::open_here(std::int64_t bytes,
                                                              MemoryCategory category,
                                                              StreamId stream) {
  MaybeBlock block = allocator_.allocate_here(Bytes(bytes), stream);
  if (!block && raises_) {
    kept_all_ = allocator_.counters().device_frees == 0;
    allocator_.raise_capacity();
    block = allocator_.allocate(Bytes(bytes), stream);
  }
  if (!block) {
    exhausted_ = true;
    return {};
  }
  now_[static_cast<std::size_t>(category)] += allocator_.size(*block).value;
  if (allocator_.allocated() > peak_) {
    peak_ = allocator_.allocated();
    at_peak_now_ = true;
  }
  return {block, category};
}

[[gnu::always_inline]] inline void MemoryLedger::close_here(Holding& holding) {
  if (!holding.block) return;
  if (at_peak_now_) {
    at_peak_ = now_;
    at_peak_now_ = false;
  }
  now_[static_cast<std::size_t>(holding.category)] -= allocator_.size(*holding.block).value;
  allocator_.free_here(*holding.block);
  holding.block.reset();
}

inline void MemoryLedger::touch_in_full(std::int64_t bytes, MemoryCategory category) {
  const std::optional<Bytes> size = allocator_.touch(Bytes(bytes));
  if (!size) {
    Holding holding = open(bytes, category);
    close(holding);
    return;
  }
  const Bytes most = allocator_.allocated() + *size;
  if (most <= peak_) return;
  peak_ = most;
  at_peak_ = now_;
  at_peak_[static_cast<std::size_t>(category)] += size->value;
  at_peak_now_ = false;
}

}  // namespace shardwise
