#include "simulator/memory/free_block_set.hpp"

namespace shardwise {

std::vector<FreeBlock> FreeBlockSet::entries() const {
  std::vector<FreeBlock> all;
  for (Position at = first_of(next_occupied(0)); at != nullptr; at = after(at)) all.push_back(*at);
  return all;
}

void FreeBlockSet::clear() {
  for (Bin& bin : bins_) bin.count = 0;
  occupied_ = {};
  occupied_words_ = 0;
}

// To places for four others, or twice as many as there are, half of what is free before them.
void FreeBlockSet::Bin::grow() {
  const std::uint32_t there = count - 1;
  const std::uint32_t more = std::max<std::uint32_t>(4, 2 * there + 2);
  auto larger = std::make_unique<FreeBlock[]>(more);
  FreeBlock* const first = larger.get() + (more - there) / 2;
  std::copy(others, others + there, first);
  others = first;
  places = std::move(larger);
  capacity = more;
}

}  // namespace shardwise
