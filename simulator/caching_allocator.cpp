#include "simulator/caching_allocator.hpp"

#include <algorithm>
#include <bit>

#include "catalog/require.hpp"
#include "simulator/expandable_segment.hpp"

namespace shardwise {
namespace {

constexpr Bytes one_exabyte{std::int64_t{1} << 60};

std::size_t number(StreamId stream) { return static_cast<std::size_t>(stream); }

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, std::optional<Bytes> capacity)
    : settings_(settings),
      memory_(capacity),
      ages_(settings.garbage_collection_threshold && settings.process_limit) {
  require(check(settings, {}).empty(), "allocator settings are checked before they are played");
}

MaybeBlock CachingAllocator::allocate(Bytes request, StreamId stream) {
  require(request >= Bytes{}, "a request for memory is not negative");
  if (request == Bytes{}) return border_block;
  if (request >= one_exabyte) {
    fail(request, request);
    return std::nullopt;
  }
  const Bytes size = block_size(request, settings_.roundup_power2_divisions);
  BlockPool& pool = pool_of(stream, is_small(size));
  MaybeBlock block = take_cached(pool, size);
  if (!block) block = take_new(pool, request, size);
  if (!block) return std::nullopt;
  return hand_out(*block);
}

void CachingAllocator::record_stream(BlockId block, StreamId user) {
  if (block == border_block) return;
  require(blocks_[block].state == BlockState::allocated, "only an allocated block is recorded");
  require(number(user) < max_streams, "a GPU has at most 64 streams here");
  if (pools_[blocks_[block].pool].stream == user) return;
  blocks_[block].users |= std::uint64_t{1} << number(user);
}

void CachingAllocator::free(BlockId block) {
  if (block == border_block) return;
  MemoryBlock& freed = blocks_[block];
  require(freed.state == BlockState::allocated, "only an allocated block is freed");
  allocated_ -= freed.size;
  if (freed.users == 0) {
    settle(block);
    return;
  }
  freed.state = BlockState::pending;
  for (std::uint64_t users = freed.users; users != 0; users &= users - 1) {
    const auto stream = static_cast<std::size_t>(std::countr_zero(users));
    if (queues_.size() <= stream) queues_.resize(stream + 1);
    queues_[stream].waiting.push_back(block);
  }
}

void CachingAllocator::stream_done(StreamId stream) { stream_done(stream, mark(stream)); }

void CachingAllocator::stream_done(StreamId stream, StreamMark until) {
  if (number(stream) >= queues_.size()) return;
  StreamQueue& queue = queues_[number(stream)];
  while (queue.settled < queue.waiting.size() && queue.forgotten + queue.settled < until.frees) {
    const BlockId block = queue.waiting[queue.settled++];
    blocks_[block].users &= ~(std::uint64_t{1} << number(stream));
    if (blocks_[block].users == 0) settle(block);
  }
  if (queue.settled == queue.waiting.size()) {
    queue.forgotten += queue.settled;
    queue.settled = 0;
    queue.waiting.clear();
  }
}

StreamMark CachingAllocator::mark(StreamId stream) const {
  if (number(stream) >= queues_.size()) return {};
  const StreamQueue& queue = queues_[number(stream)];
  return {queue.forgotten + queue.waiting.size()};
}

void CachingAllocator::empty_cache() { release_cache(); }

void CachingAllocator::reset_peaks() {
  peak_allocated_ = allocated_;
  peak_active_ = active_;
  memory_.reset_peak();
}

void CachingAllocator::reset() {
  blocks_.clear();
  for (BlockPool& pool : pools_) {
    pool.free.clear();
    pool.unmapped.clear();
  }
  queues_.clear();
  memory_ = DeviceMemory(memory_.capacity());
  allocated_ = active_ = peak_allocated_ = peak_active_ = Bytes{};
  large_searches_ = 0;
  retries_ = failures_ = 0;
  failure_.reset();
}

BlockPool& CachingAllocator::pool_of(StreamId stream, bool small) {
  const std::size_t index = 2 * number(stream) + (small ? 0 : 1);
  while (pools_.size() <= index) {
    require(pools_.size() < 2 * max_streams, "a GPU has at most 64 streams here");
    BlockPool& pool = pools_.emplace_back();
    pool.index = static_cast<std::uint16_t>(pools_.size() - 1);
    pool.stream = static_cast<StreamId>(pool.index / 2);
    pool.small = pool.index % 2 == 0;
  }
  return pools_[index];
}

// [get_free_block]
MaybeBlock CachingAllocator::take_cached(BlockPool& pool, Bytes size) {
  if (ages_ && !pool.small) ++large_searches_;
  FreeBlockSet::Position at = pool.free.best_fit(size);
  if (pool.free.at_end(at)) return std::nullopt;
  if (settings_.expandable_segments) at = prefer_holes(pool, blocks_, at);
  if (!may_take(pool.free[at].size, size)) return std::nullopt;
  const BlockId block = pool.free[at].block;
  if (!should_split(pool, blocks_[block].size, size)) {
    pool.free.erase(at);
    return block;
  }
  const BlockId front = blocks_.cut_front(block, size);
  pool.free.replace(at, block, blocks_[block]);
  return front;
}

bool CachingAllocator::may_take(Bytes block, Bytes size) const {
  if (!settings_.max_split_size) return true;
  if (size < *settings_.max_split_size) return block < *settings_.max_split_size;
  return block < size + settings_.max_non_split_rounding;
}

bool CachingAllocator::should_split(const BlockPool& pool, Bytes block, Bytes size) const {
  const Bytes rest = block - size;
  if (pool.small || settings_.expandable_segments) return rest >= min_block_size;
  const bool splittable = !settings_.max_split_size || size < *settings_.max_split_size;
  return splittable && rest > largest_small_block;
}

MemoryBlockId CachingAllocator::hand_out(BlockId block) {
  MemoryBlock& given = blocks_[block];
  given.state = BlockState::allocated;
  allocated_ += given.size;
  active_ += given.size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  peak_active_ = std::max(peak_active_, active_);
  return block;
}

// [free_block]
void CachingAllocator::settle(BlockId block) {
  active_ -= blocks_[block].size;
  blocks_[block].idle_since = large_searches_;
  add_free(pools_[blocks_[block].pool], blocks_, block);
}

}  // namespace shardwise
