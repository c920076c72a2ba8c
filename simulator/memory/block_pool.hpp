// BlockPool: the cached blocks of one stream and one size class, small or large.
#pragma once

#include <cstdint>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/memory/allocator_settings.hpp"
#include "simulator/memory/free_block_set.hpp"
#include "simulator/memory/memory_block.hpp"

namespace shardwise {

struct BlockPool {
  std::uint8_t index = 0;  // MemoryBlock::pool of its blocks
  StreamId stream{};
  bool small = false;
  std::int32_t least_rest = 0;  // bytes of a block that are worth splitting off
  FreeBlockSet free;
  std::vector<MemoryBlockId> unmapped;  // of expandable segments, by address

  // The unit of physical memory that expandable segments of this pool map. [find_expandable_block]
  Bytes page_size() const { return small ? small_segment_size : large_segment_size; }
};

// `id` becomes free: it takes in its free neighbours and joins the set.
[[gnu::always_inline]] inline void add_free(BlockPool& pool, BlockList& blocks, MemoryBlockId id) {
  MemoryBlock& block = blocks[id];
  block.state = BlockState::free;
  if (blocks[block.next].state == BlockState::free) {
    pool.free.erase(blocks[block.next]);
    blocks.absorb_next(id);
  }
  if (blocks[block.previous].state == BlockState::free) {
    pool.free.erase(blocks[block.previous]);
    blocks.absorb_previous(id);
  }
  pool.free.insert(id, block);
}

// The first `size` bytes of `id`, which is not in the set; the rest joins the set.
[[gnu::always_inline]] inline MemoryBlockId split_front(BlockPool& pool, BlockList& blocks,
                                                        MemoryBlockId id, Bytes size) {
  const MemoryBlockId front = blocks.cut_front(id, size);
  pool.free.insert(id, blocks[id]);
  return front;
}

}  // namespace shardwise
