#include "simulator/memory/caching_allocator.hpp"

#include <algorithm>
#include <bit>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

std::size_t number(StreamId stream) { return static_cast<std::size_t>(stream); }

// log2 of the divisions of a power of two, where all sizes have as many; else 0.
int shift_of(const PowerOfTwoDivisions& divisions) {
  const std::uint32_t first = divisions.front();
  const bool alike = std::all_of(divisions.begin(), divisions.end(),
                                 [&](std::uint32_t each) { return each == first; });
  return alike && first > 1 ? std::countr_zero(first) : 0;
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, std::optional<Bytes> capacity)
    : settings_(settings),
      divides_(settings.roundup_power2_divisions != PowerOfTwoDivisions{}),
      divisions_shift_(shift_of(settings.roundup_power2_divisions)),
      memory_(capacity),
      plain_(!divides_ && !settings.expandable_segments && !settings.max_split_size &&
             !settings.garbage_collection_threshold),
      ages_(settings.garbage_collection_threshold && settings.process_limit),
      takes_larger_(!ages_ && !settings.max_split_size) {
  require(check(settings, {}).empty(), "allocator settings are checked before they are played");
  open_pool(1);
}

void CachingAllocator::open_pool(std::size_t index) {
  require(index < 2 * max_streams, "a GPU has at most 64 streams here");
  while (pools_.size() <= index) {
    BlockPool& pool = pools_.emplace_back();
    pool.index = static_cast<std::uint8_t>(pools_.size() - 1);
    pool.stream = static_cast<StreamId>(pool.index / 2);
    pool.small = pool.index % 2 == 0;
    // All sizes are multiples of the least one: more than the largest small one is that and one.
    const bool rests_are_kept = pool.small || settings_.expandable_segments;
    pool.least_rest = static_cast<std::int32_t>(
        (rests_are_kept ? min_block_size : largest_small_block + min_block_size).value);
  }
}

MaybeBlock CachingAllocator::allocate_otherwise(Bytes request, StreamId stream) {
  if (request <= Bytes{} || static_cast<std::uint64_t>(request.value) >= one_exabyte)
    return refuse(request);
  const Bytes size = rounded(request);
  BlockPool& pool = pool_of(stream, is_small(size));
  if (ages_ && !pool.small) ++large_searches_;
  const FreeBlockSet::Position at = cached(pool, size);
  return at == nullptr ? take_new(pool, request, size) : hand_out(take_from(pool, at, size));
}

// Another block than the first of at least the size, or none of them.
FreeBlockSet::Position CachingAllocator::settled_on(const BlockPool& pool, Bytes size,
                                                    FreeBlockSet::Position first) const {
  const BlockId behind = blocks_[first->block].next;  // else the first is the best
  if (settings_.expandable_segments && blocks_[behind].state == BlockState::unmapped)
    first = prefer_holes(pool, blocks_, first);
  return may_take(first->size, size) ? first : nullptr;
}

bool CachingAllocator::may_take(Bytes block, Bytes size) const {
  if (!settings_.max_split_size) return true;
  if (size < *settings_.max_split_size) return block < *settings_.max_split_size;
  return block < size + settings_.max_non_split_rounding;
}

void CachingAllocator::record_stream(BlockId block, StreamId user) {
  if (block == border_block) return;
  require(blocks_[block].state == BlockState::allocated, "only an allocated block is recorded");
  require(number(user) < max_streams, "a GPU has at most 64 streams here");
  if (pools_[blocks_[block].pool].stream == user) return;
  blocks_[block].users |= std::uint64_t{1} << number(user);
}

void CachingAllocator::wait_for_users(BlockId block) {
  MemoryBlock& freed = blocks_[block];
  freed.state = BlockState::pending;
  pending_ += freed.size;
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
    if (blocks_[block].users != 0) continue;
    pending_ -= blocks_[block].size;
    settle(block);
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
  allocated_ = pending_ = peak_allocated_ = Bytes{};
  large_searches_ = 0;
  retries_ = failures_ = 0;
  failure_.reset();
}

}  // namespace shardwise
