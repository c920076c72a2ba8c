#include "simulator/memory/free_block_set.hpp"

namespace shardwise {

std::vector<FreeBlock> FreeBlockSet::entries() const {
  std::vector<FreeBlock> all;
  for (Position at = first_of(next_occupied(0)); at != nullptr; at = after(at)) all.push_back(*at);
  return all;
}

void FreeBlockSet::clear() {
  for (Bin& bin : bins_) bin.size = 0;
  occupied_ = {};
}

void FreeBlockSet::Bin::grow() {
  const std::uint32_t more = capacity == 0 ? 4 : 2 * capacity;
  auto larger = std::make_unique<FreeBlock[]>(more);
  std::copy(entries.get(), entries.get() + size, larger.get());
  entries = std::move(larger);
  capacity = more;
}

}  // namespace shardwise
