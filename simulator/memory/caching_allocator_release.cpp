// The way of an allocation that no cached block can take, and all ways in which memory goes back to
// CUDA: member functions of CachingAllocator in the order in which malloc() tries them.
#include <algorithm>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/memory/caching_allocator.hpp"
#include "simulator/memory/expandable_segment.hpp"

namespace shardwise {
// A request of nothing, or of more than there is.
MaybeBlock CachingAllocator::refuse(Bytes request) {
  require(request >= Bytes{}, "a request for memory is not negative");
  if (request == Bytes{}) return border_block;
  fail(request, request);
  return std::nullopt;
}

// [malloc]
MaybeBlock CachingAllocator::take_new(BlockPool& pool, Bytes request, Bytes size) {
  if (ages_) collect_garbage();
  MaybeBlock block = new_block(pool, size);
  if (!block && release_oversize(pool, size)) block = new_block(pool, size);
  if (!block) {
    release_cache();
    ++retries_;
    block = new_block(pool, size);
  }
  if (!block) {
    fail(request, segment_size(size));
    return std::nullopt;
  }
  const bool splits = should_split(pool, blocks_[*block].size, size);
  return hand_out(splits ? split_front(pool, blocks_, *block, size) : *block);
}

// [alloc_block] The process limit counts a whole segment even where only a page would be mapped.
MaybeBlock CachingAllocator::new_block(BlockPool& pool, Bytes size) {
  const Bytes segment = segment_size(size);
  if (settings_.process_limit && memory_.reserved() + segment > *settings_.process_limit) {
    return std::nullopt;
  }
  if (settings_.expandable_segments) return grow(pool, blocks_, memory_, size);
  if (!memory_.has_room(segment)) return std::nullopt;
  memory_.take(segment);
  return blocks_.create(memory_.new_address_range(segment), segment, pool.index, BlockState::free);
}

// [garbage_collect_cached_blocks] Over the threshold, frees the unsplit large blocks that have been
// idle for at least the average age, again and again until enough has gone. A block's age is the
// number of searches of the large pools since it became free.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      Bytes(static_cast<std::int64_t>(*settings_.garbage_collection_threshold *
                                      static_cast<double>(settings_.process_limit->value)));
  if (memory_.reserved() <= threshold || settings_.expandable_segments) return;
  const auto age = [&](BlockId block) { return large_searches_ - blocks_[block].idle_since; };

  std::vector<BlockId> idle;
  for (const BlockPool& pool : pools_) {
    if (pool.small) continue;
    for (const FreeBlock& entry : pool.free.entries()) {
      if (!blocks_[entry.block].is_split()) idle.push_back(entry.block);
    }
  }
  while (!idle.empty() && memory_.reserved() > threshold) {
    double total_age = 0.0;
    for (const BlockId block : idle) total_age += age(block);
    const double average = total_age / static_cast<double>(idle.size());
    const auto old = std::partition(idle.begin(), idle.end(),
                                    [&](BlockId block) { return age(block) < average; });
    for (auto block = old; block != idle.end(); ++block) {
      BlockPool& pool = pools_[blocks_[*block].pool];
      release_segment(pool, *block);
    }
    idle.erase(old, idle.end());
  }
}

// [release_available_cached_blocks] One block that is large enough, or else several oversize ones
// from the largest down until together they are.
bool CachingAllocator::release_oversize(BlockPool& pool, Bytes size) {
  if (!settings_.max_split_size || settings_.expandable_segments) return false;
  const Bytes oversize = *settings_.max_split_size;
  const Bytes wanted = std::max(size, oversize);
  const auto fit = pool.free.best_fit(wanted);
  if (fit != nullptr) {
    release_segment(pool, fit->block);
    return true;
  }
  const std::vector<FreeBlock> entries = pool.free.entries();
  Bytes released;
  for (std::size_t i = entries.size(); i > 0; --i) {
    const FreeBlock& largest = entries[i - 1];
    if (released >= wanted || largest.size < oversize) break;
    released += largest.size;
    release_segment(pool, largest.block);
  }
  return released >= wanted;
}

// [release_cached_blocks]
void CachingAllocator::release_cache() {
  for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
    stream_done(static_cast<StreamId>(stream));
  }
  for (BlockPool& pool : pools_) {
    if (settings_.expandable_segments) {
      unmap_free_pages(pool, blocks_, memory_);
    } else {
      release_unsplit(pool);
    }
  }
}

void CachingAllocator::release_unsplit(BlockPool& pool) {
  std::vector<BlockId> unsplit;  // most often none
  pool.free.each([&](const FreeBlock& entry) {
    if (!blocks_[entry.block].is_split()) unsplit.push_back(entry.block);
  });
  for (const BlockId block : unsplit) release_segment(pool, block);
}

void CachingAllocator::release_segment(BlockPool& pool, BlockId block) {
  require(!blocks_[block].is_split(), "a segment goes back to CUDA as one block");
  pool.free.erase(blocks_[block]);
  memory_.give_back(blocks_[block].size);
  blocks_.remove(block);
}

void CachingAllocator::raise_capacity() {
  require(failure_ && memory_.capacity().has_value(), "a capacity has refused a request");
  // Segments that grow are mapped by whole pages, of which one is more than what CUDA is asked for.
  const BlockPool& pool = pools_[is_small(rounded(failure_->request)) ? 0 : 1];
  const Bytes missed = settings_.expandable_segments ? round_up(failure_->segment, pool.page_size())
                                                     : failure_->segment;
  memory_.raise_capacity(memory_.reserved() + missed);
}

std::optional<Bytes> CachingAllocator::limit() const {
  if (!memory_.capacity()) return settings_.process_limit;
  return std::min(*memory_.capacity(), settings_.process_limit.value_or(*memory_.capacity()));
}

void CachingAllocator::fail(Bytes request, Bytes segment) {
  ++failures_;
  failure_ = OutOfMemory{request, segment, allocated_, memory_.reserved(), limit()};
}

}  // namespace shardwise
