// CachingAllocator: PyTorch's CUDA caching allocator on one GPU, played on sizes instead of memory.
//
// What it answers: after this sequence of allocations and frees, how much is allocated (blocks in
// use), how much is reserved (segments taken from CUDA and kept), and would it have run out?
//
//   request --> block size --> pool of its (stream, small|large) --> cached block, best fit
//                                                        | miss
//                                                        v
//             garbage collection, new segment, release of oversize blocks + new segment,
//             wait for all streams + release of all unsplit segments + new segment (a retry),
//             out of memory                                                        [malloc]
//
// Rules, with the PyTorch symbol that states each:
//   - Best fit is the first free block, by (size, address), of at least the size, on the same
//     stream and of the same pool; no other stream's block is ever taken.        [get_free_block]
//   - The rest of a block is split off if it has 512 B (small pool, expandable segments), or more
//     than 1 MiB and the request is below max_split_size (large pool).              [should_split]
//     Otherwise the whole block is handed out and counts as allocated.         [alloc_found_block]
//   - With max_split_size M: a request below M never takes a block of M or more; a request of M or
//     more takes a block only if that is less than max_non_split_rounding larger. [get_free_block]
//   - A freed block merges with free neighbours of its segment.      [free_block, try_merge_blocks]
//   - A segment goes back to CUDA only as one unsplit free block.                [release_blocks]
//   - Expandable segments: see expandable_segment.hpp.
//   - A block that other streams were recorded on stays unusable after free() until their work
//     at that time is done.                                      [insert_events, process_events]
//
// Source: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp @001074d250; the exemption of
// expandable blocks from garbage collection and from the release of oversize blocks is that of
// later versions.
// Left out: private pools (CUDA graphs, torch.cuda.MemPool) and free-memory callbacks.
// Assumed: cudaMalloc returns ever higher addresses, so a tie in size goes to the older segment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "catalog/require.hpp"
#include "catalog/units.hpp"
#include "simulator/memory/allocator_settings.hpp"
#include "simulator/memory/block_pool.hpp"
#include "simulator/memory/device_memory.hpp"
#include "simulator/memory/expandable_segment.hpp"
#include "simulator/memory/memory_block.hpp"
#include "simulator/memory/memory_snapshot.hpp"

namespace shardwise {

// Why allocate() gave nothing: `segment` bytes were asked of CUDA (not the request: a request of
// 1.1 MiB can fail with 19 MiB left) when `reserved` of `limit` were already taken.
struct OutOfMemory {
  Bytes request;
  Bytes segment;
  Bytes allocated;
  Bytes reserved;
  std::optional<Bytes> limit;  // the smaller of capacity and process limit

  friend bool operator==(const OutOfMemory&, const OutOfMemory&) = default;
};

// Slow things that happened: waits for the device, and calls to CUDA.
struct AllocatorCounters {
  std::int64_t retries = 0;  // waits for the device + release of the cache [num_alloc_retries]
  std::int64_t out_of_memory = 0;       // [num_ooms]
  std::int64_t device_allocations = 0;  // cudaMalloc calls, or ranges of pages mapped
  std::int64_t device_frees = 0;        // cudaFree calls, or ranges of pages unmapped

  friend bool operator==(const AllocatorCounters&, const AllocatorCounters&) = default;
};

// A point in the order of the frees that wait for a stream.
struct StreamMark {
  std::uint64_t frees = 0;
};

class CachingAllocator {
 public:
  using BlockId = MemoryBlockId;

  // `capacity` is what CUDA can give to segments: usable memory less context, NCCL and the rest.
  // None: no limit. Settings must have passed check().
  explicit CachingAllocator(const AllocatorSettings& settings = {},
                            std::optional<Bytes> capacity = std::nullopt);

  // A block for `request` bytes, or nothing when out of memory; then out_of_memory() says why, the
  // cache has been released, and everything allocated is still there. A request of zero bytes
  // takes no memory and gets the empty block, which may be freed like any other; one of 2^60 bytes
  // is refused without a try.                                                         [allocate]
  MaybeBlock allocate(Bytes request, StreamId stream = {});
  // The same, and free_here() as free(), set down where it is called: for the loop over the events
  // of a layer, which is most of a play.
  MaybeBlock allocate_here(Bytes request, StreamId stream);

  // What allocate() followed at once by free() does on the stream that computes: nothing but raise
  // the peaks. Returns the size of the block that was there for a moment; nothing where it would
  // leave more behind: where memory is asked of CUDA, or blocks have an age.
  std::optional<Bytes> touch(Bytes request);

  // Whether touch() would find a block and do nothing at all, neither its own peak nor `peak` being
  // reached: surely if it says so; if not, touch() tells.
  bool touch_is_nothing(Bytes request, Bytes peak) const;

  // As if the GPU had, and had had, as much more memory as the latest allocate() missed, which
  // nothing but the capacity may have refused: the same request is served now.
  void raise_capacity();

  // `user` works on this block too. Ignored if it is the stream the block was allocated on.
  void record_stream(BlockId block, StreamId user);

  // The block must have come from allocate() and not been freed since. It can be reused on its
  // stream at once, or, if other streams were recorded, after stream_done() of each.
  void free(BlockId block);
  void free_here(BlockId block);

  // Everything that `stream` had been given is done: at the latest free, or at the mark.
  void stream_done(StreamId stream);
  void stream_done(StreamId stream, StreamMark until);
  StreamMark mark(StreamId stream) const;

  // torch.cuda.empty_cache(): waits for all streams and releases all that can be released.
  void empty_cache();

  void reset_peaks();
  // As constructed, but keeps the heap memory of the bookkeeping for the next play.
  void reset();

  Bytes allocated() const { return allocated_; }  // memory_allocated(): blocks not yet freed
  Bytes active() const { return allocated_ + pending_; }  // and blocks that still wait for streams
  Bytes reserved() const { return memory_.reserved(); }   // memory_reserved(): segments
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return memory_.peak_reserved(); }
  std::int64_t alloc_retries() const { return retries_; }
  AllocatorCounters counters() const {
    return {retries_, failures_, memory_.takes(), memory_.gives()};
  }
  // The latest failure of allocate(), if there was one.
  const std::optional<OutOfMemory>& out_of_memory() const { return failure_; }
  std::optional<Bytes> capacity() const { return memory_.capacity(); }
  Bytes size(BlockId block) const { return blocks_[block].size; }  // what it counts as allocated

  std::vector<SegmentView> snapshot() const { return segments(blocks_, pools_); }

 private:
  static constexpr std::uint64_t one_exabyte = std::uint64_t{1} << 60;

  // The frees that wait for one stream, the oldest first.
  struct StreamQueue {
    std::vector<BlockId> waiting;
    std::size_t settled = 0;      // of `waiting`, from the front
    std::uint64_t forgotten = 0;  // settled ones that have left `waiting`
  };

  Bytes rounded(Bytes request) const {
    if (!divides_) return plain_block_size(request);
    return divisions_shift_ > 0 && request > Bytes(min_block_size.value << divisions_shift_)
               ? in_divisions(request)
               : block_size(request, settings_.roundup_power2_divisions);
  }
  // plain_block_size() of a request of more than nothing, without a division.
  static constexpr Bytes in_units(Bytes request) {
    constexpr std::int64_t below = min_block_size.value - 1;
    return Bytes((request.value + below) & ~below);
  }
  // block_size() of more than a least block for each division, where all sizes have as many.
  Bytes in_divisions(Bytes request) const {
    const auto size = static_cast<std::uint64_t>(request.value);
    const std::uint64_t power = std::uint64_t{1}
                                << (63U ^ static_cast<unsigned>(__builtin_clzll(size)));
    const std::uint64_t below = (power >> divisions_shift_) - 1;
    return Bytes(static_cast<std::int64_t>((size + below) & ~below));
  }
  BlockPool& pool_of(StreamId stream, bool small);
  void open_pool(std::size_t index);
  FreeBlockSet::Position cached(const BlockPool& pool, Bytes size) const;
  BlockId take_from(BlockPool& pool, FreeBlockSet::Position at, Bytes size);
  FreeBlockSet::Position settled_on(const BlockPool& pool, Bytes size,
                                    FreeBlockSet::Position first) const;
  bool may_take(Bytes block, Bytes size) const;
  bool should_split(const BlockPool& pool, Bytes block, Bytes size) const;
  BlockId hand_out(BlockId block);
  void settle(BlockId block);
  void wait_for_users(BlockId block);

  MaybeBlock allocate_otherwise(Bytes request, StreamId stream);
  MaybeBlock refuse(Bytes request);
  MaybeBlock take_new(BlockPool& pool, Bytes request, Bytes size);
  MaybeBlock new_block(BlockPool& pool, Bytes size);
  void collect_garbage();
  bool release_oversize(BlockPool& pool, Bytes size);
  void release_cache();
  void release_unsplit(BlockPool& pool);
  void release_segment(BlockPool& pool, BlockId block);
  void fail(Bytes request, Bytes segment);
  std::optional<Bytes> limit() const;

  AllocatorSettings settings_;
  bool divides_ = false;     // some size is rounded up to a division of a power of two
  int divisions_shift_ = 0;  // log2 of the divisions, where all sizes have as many; else 0
  BlockList blocks_;
  std::vector<BlockPool> pools_;     // by 2 * stream + (0 small, 1 large)
  std::vector<StreamQueue> queues_;  // by stream
  DeviceMemory memory_;
  Bytes allocated_;
  Bytes pending_;  // of blocks that are freed, but wait for streams
  Bytes peak_allocated_;
  bool plain_ = true;                 // the first block that is large enough is taken, and split
  bool ages_ = false;                 // garbage collection is on
  bool takes_larger_ = true;          // a request may take any block that is large enough
  std::uint32_t large_searches_ = 0;  // the clock of its ages [get_free_blocks_call_count]
  std::int64_t retries_ = 0;
  std::int64_t failures_ = 0;
  std::optional<OutOfMemory> failure_;
};

// The way of a request that a cached block can take, and back: most of a play, so inline.

inline MaybeBlock CachingAllocator::allocate(Bytes request, StreamId stream) {
  return allocate_here(request, stream);
}

[[gnu::always_inline]] inline MaybeBlock CachingAllocator::allocate_here(Bytes request,
                                                                         StreamId stream) {
  const auto bytes = static_cast<std::uint64_t>(request.value);
  if (!plain_ || bytes - 1 >= one_exabyte - 1) [[unlikely]]
    return allocate_otherwise(request, stream);
  const Bytes size = in_units(request);
  BlockPool& pool = pool_of(stream, is_small(size));
  const FreeBlockSet::Position at = pool.free.best_fit(size);
  if (at == nullptr) return take_new(pool, request, size);
  return hand_out(take_from(pool, at, size));
}

inline void CachingAllocator::free(BlockId block) { free_here(block); }

[[gnu::always_inline]] inline void CachingAllocator::free_here(BlockId block) {
  if (block == border_block) return;
  const MemoryBlock& freed = blocks_[block];
  require(freed.state == BlockState::allocated, "only an allocated block is freed");
  allocated_ -= freed.size;
  if (freed.users == 0)
    settle(block);
  else
    wait_for_users(block);
}

inline std::optional<Bytes> CachingAllocator::touch(Bytes request) {
  if (request <= Bytes{} || ages_) return std::nullopt;
  const Bytes size = plain_ ? in_units(request) : rounded(request);
  const BlockPool& pool = pool_of({}, is_small(size));
  const FreeBlockSet::Position at = cached(pool, size);
  if (at == nullptr) return std::nullopt;
  const Bytes given = should_split(pool, at->size, size) ? size : at->size;
  peak_allocated_ = std::max(peak_allocated_, allocated_ + given);
  return given;
}

// What is not worth splitting off is given too.
[[gnu::always_inline]] inline bool CachingAllocator::touch_is_nothing(Bytes request,
                                                                      Bytes peak) const {
  if (request <= Bytes{} || !takes_larger_) return false;
  const Bytes size = plain_ ? in_units(request) : rounded(request);
  const BlockPool& pool = pools_[is_small(size) ? 0 : 1];
  const Bytes most = allocated_ + size + Bytes(pool.least_rest);
  return most <= peak && most <= peak_allocated_ && pool.free.has_in_higher_bin(size);
}

[[gnu::always_inline]] inline BlockPool& CachingAllocator::pool_of(StreamId stream, bool small) {
  const std::size_t index = 2 * static_cast<std::size_t>(stream) + (small ? 0 : 1);
  if (stream != StreamId{} && index >= pools_.size()) open_pool(index);
  return pools_[index];
}

// The block that a request takes, if any.                                        [get_free_block]
[[gnu::always_inline]] inline FreeBlockSet::Position CachingAllocator::cached(const BlockPool& pool,
                                                                              Bytes size) const {
  const FreeBlockSet::Position at = pool.free.best_fit(size);
  return plain_ || at == nullptr ? at : settled_on(pool, size, at);
}

[[gnu::always_inline]] inline MemoryBlockId CachingAllocator::take_from(BlockPool& pool,
                                                                        FreeBlockSet::Position at,
                                                                        Bytes size) {
  const BlockId block = at->block;
  const bool splits = should_split(pool, at->size, size);
  pool.free.erase(at);
  return splits ? split_front(pool, blocks_, block, size) : block;
}

[[gnu::always_inline]] inline bool CachingAllocator::should_split(const BlockPool& pool,
                                                                  Bytes block, Bytes size) const {
  if (block - size < Bytes(pool.least_rest)) return false;
  return plain_ || pool.small || settings_.expandable_segments || !settings_.max_split_size ||
         size < *settings_.max_split_size;
}

[[gnu::always_inline]] inline MemoryBlockId CachingAllocator::hand_out(BlockId block) {
  MemoryBlock& given = blocks_[block];
  given.state = BlockState::allocated;
  allocated_ += given.size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

// [free_block]
[[gnu::always_inline]] inline void CachingAllocator::settle(BlockId block) {
  blocks_[block].idle_since = large_searches_;
  add_free(pools_[blocks_[block].pool], blocks_, block);
}

}  // namespace shardwise
