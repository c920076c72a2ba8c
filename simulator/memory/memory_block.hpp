// MemoryBlock: a piece of a segment; BlockList: all blocks of an allocator.
//
// The blocks of a segment form a chain in the order of their addresses, without gaps: for
// neighbours a, b: a.address + a.size == b.address. Both ends of every chain are the border, a
// block of no size that is never free, so that no code asks whether there is a neighbour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "catalog/units.hpp"

namespace shardwise {

// A CUDA stream of the GPU, numbered by the caller from 0, which is the one that computes.
enum class StreamId : std::uint8_t {};
inline constexpr std::size_t max_streams = 64;

struct MemoryBlockId {
  std::uint32_t index = 0;
  friend constexpr bool operator==(MemoryBlockId, MemoryBlockId) = default;
};
inline constexpr MemoryBlockId border_block{};

// A block or none, as std::optional would say it, in one word: one that is made in two parts and
// read in one piece has the processor wait for the parts, at every allocation.
class MaybeBlock {
 public:
  constexpr MaybeBlock() = default;
  constexpr MaybeBlock(MemoryBlockId block) : block_(block) {}
  constexpr MaybeBlock(std::nullopt_t) {}

  constexpr explicit operator bool() const { return !(block_ == none); }
  constexpr bool has_value() const { return !(block_ == none); }
  constexpr MemoryBlockId operator*() const { return block_; }
  void reset() { block_ = none; }

 private:
  static constexpr MemoryBlockId none{0xffffffff};
  MemoryBlockId block_ = none;
};

enum class BlockState : std::uint8_t {
  border,     // the end of a chain
  free,       // cached: mapped memory that may be handed out
  allocated,  // handed out
  pending,    // freed, but streams it was recorded on still work
  unmapped,   // address space of an expandable segment without memory behind it
  recycled,   // not a block: an entry of the list that waits to be used again
};

struct MemoryBlock {
  Bytes address;
  Bytes size;
  std::uint64_t users = 0;       // bit s: stream s was recorded and is not known to be done
  std::uint32_t idle_since = 0;  // the allocator's count of searches when it became free
  MemoryBlockId previous;
  MemoryBlockId next;
  std::uint8_t pool = 0;
  BlockState state = BlockState::free;
  std::uint16_t bin = 0;  // of the set of free blocks, while it is in it

  bool is_split() const { return !(previous == border_block) || !(next == border_block); }
};

class BlockList {
 public:
  BlockList() { clear(); }

  MemoryBlock& operator[](MemoryBlockId id) { return blocks_[id.index]; }
  const MemoryBlock& operator[](MemoryBlockId id) const { return blocks_[id.index]; }

  // A chain of one block. References into the list end here.
  MemoryBlockId create(Bytes address, Bytes size, std::uint8_t pool, BlockState state) {
    const MemoryBlockId id = unused_entry();
    blocks_[id.index] = {address, size, 0, 0, {}, {}, pool, state};
    return id;
  }

  // Cuts the first `size` bytes off `block`: they become a new block before it, of the same state.
  MemoryBlockId cut_front(MemoryBlockId block, Bytes size) {
    const MemoryBlockId front = unused_entry();
    MemoryBlock& rest = blocks_[block.index];
    MemoryBlock& cut = blocks_[front.index];
    cut.address = rest.address;
    cut.size = size;
    cut.users = 0;
    cut.previous = rest.previous;
    cut.next = block;
    cut.pool = rest.pool;
    cut.state = rest.state;
    blocks_[rest.previous.index].next = front;
    rest.previous = front;
    rest.address += size;
    rest.size -= size;
    return front;
  }

  // `block` takes in its neighbour, whose entry is recycled.
  void absorb_previous(MemoryBlockId block) {
    MemoryBlock& into = blocks_[block.index];
    const MemoryBlockId gone = into.previous;
    into.address = blocks_[gone.index].address;
    into.size += blocks_[gone.index].size;
    into.previous = blocks_[gone.index].previous;
    blocks_[into.previous.index].next = block;
    recycle(gone);
  }
  void absorb_next(MemoryBlockId block) {
    MemoryBlock& into = blocks_[block.index];
    const MemoryBlockId gone = into.next;
    into.size += blocks_[gone.index].size;
    into.next = blocks_[gone.index].next;
    blocks_[into.next.index].previous = block;
    recycle(gone);
  }

  // Ends a chain of one block.
  void remove(MemoryBlockId block) { recycle(block); }

  void clear() {
    blocks_.assign(1, MemoryBlock{});
    blocks_.front().state = BlockState::border;
    recycled_ = border_block;
  }

  // Every entry, the border and recycled ones too.
  std::size_t entries() const { return blocks_.size(); }

 private:
  MemoryBlockId unused_entry() {
    if (recycled_ == border_block) {
      blocks_.emplace_back();
      return {static_cast<std::uint32_t>(blocks_.size() - 1)};
    }
    const MemoryBlockId id = recycled_;
    recycled_ = blocks_[id.index].next;
    return id;
  }
  void recycle(MemoryBlockId id) {
    blocks_[id.index].state = BlockState::recycled;
    blocks_[id.index].next = recycled_;
    recycled_ = id;
  }

  std::vector<MemoryBlock> blocks_;
  MemoryBlockId recycled_;  // the latest recycled entry; they are chained through `next`
};

}  // namespace shardwise
