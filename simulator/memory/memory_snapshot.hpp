// The segments of an allocator as torch.cuda.memory_snapshot() lists them: by address, each with
// its blocks by address. Every mapped range of an expandable segment counts as one of its own.
#pragma once

#include <vector>

#include "catalog/units.hpp"
#include "simulator/memory/block_pool.hpp"
#include "simulator/memory/memory_block.hpp"

namespace shardwise {

struct BlockView {
  Bytes size;
  BlockState state = BlockState::free;

  friend bool operator==(const BlockView&, const BlockView&) = default;
};

struct SegmentView {
  StreamId stream{};
  bool small = false;
  Bytes address;
  Bytes size;
  std::vector<BlockView> blocks;

  friend bool operator==(const SegmentView&, const SegmentView&) = default;
};

std::vector<SegmentView> segments(const BlockList& blocks, const std::vector<BlockPool>& pools);

}  // namespace shardwise
