#include "simulator/memory/memory_snapshot.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace shardwise {
namespace {

bool begins_chain(const MemoryBlock& block) {
  const bool is_block = block.state != BlockState::border && block.state != BlockState::recycled;
  return is_block && block.previous == border_block;
}

// One segment per run of mapped blocks in the chain.
void append_chain(const BlockList& blocks, const std::vector<BlockPool>& pools, MemoryBlockId first,
                  std::vector<SegmentView>& all) {
  bool in_segment = false;
  for (MemoryBlockId id = first; !(id == border_block); id = blocks[id].next) {
    const MemoryBlock& block = blocks[id];
    if (block.state == BlockState::unmapped) {
      in_segment = false;
      continue;
    }
    const BlockPool& pool = pools[block.pool];
    if (!in_segment) all.push_back({pool.stream, pool.small, block.address, Bytes{}, {}});
    in_segment = true;
    all.back().size += block.size;
    all.back().blocks.push_back({block.size, block.state});
  }
}

}  // namespace

std::vector<SegmentView> segments(const BlockList& blocks, const std::vector<BlockPool>& pools) {
  std::vector<SegmentView> all;
  for (std::uint32_t index = 0; index < blocks.entries(); ++index) {
    const MemoryBlockId id{index};
    if (begins_chain(blocks[id])) append_chain(blocks, pools, id, all);
  }
  std::sort(all.begin(), all.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
  return all;
}

}  // namespace shardwise
