// PinnedMemory: PyTorch's caching allocator of page-locked host memory, played on sizes.
//
//   block(request) = the next power of two                        [allocate, PowerOf2Ceil]
//                    request, where it is above round_limit
//
// A request takes a cached block of exactly its block size, else a new one; blocks are never split
// or merged. So a buffer of 5 GiB costs 8 GiB of host RAM (LMCache/LMCache#1147 measured that).
// A freed block stays cached, and keeps its RAM, until empty_cache(); one above cache_limit is
// returned at once.
//
// Source: pytorch/pytorch aten/src/ATen/core/CachingHostAllocator.h @04456333a3, symbols in
// brackets.
// The two limits are the later options pinned_max_round_threshold_mb and pinned_max_cached_size_mb
// (proposed in pytorch/pytorch#171662; off by default); assumed: with them, as without, a cached
// block serves only requests of its own block size.
// Left out: copies that still run when their buffer is freed (the caller frees it after them).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "catalog/units.hpp"

namespace shardwise {

struct PinnedMemorySettings {
  std::optional<Bytes> round_limit;  // none: every request is rounded
  std::optional<Bytes> cache_limit;  // none: every block is kept

  friend bool operator==(const PinnedMemorySettings&, const PinnedMemorySettings&) = default;
};

// Host RAM that one pinned buffer takes; none for nothing.
Bytes pinned_block_size(Bytes request, const PinnedMemorySettings& settings = {});

class PinnedMemory {
 public:
  explicit PinnedMemory(const PinnedMemorySettings& settings = {}) : settings_(settings) {}

  void allocate(Bytes request);
  // REQUIRES: an allocation of the same request is in use.
  void free(Bytes request);
  void empty_cache();

  Bytes allocated() const { return allocated_; }  // blocks in use
  Bytes reserved() const { return reserved_; }    // and cached ones: what the host has lost
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return peak_reserved_; }

 private:
  struct Count {
    std::int64_t in_use = 0;
    std::int64_t cached = 0;
  };

  PinnedMemorySettings settings_;
  std::map<Bytes, Count> blocks_;  // by size
  Bytes allocated_;
  Bytes reserved_;
  Bytes peak_allocated_;
  Bytes peak_reserved_;
};

}  // namespace shardwise
