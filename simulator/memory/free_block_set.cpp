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

void FreeBlockSet::Bin::grow() {
  const std::uint32_t more = capacity == 0 ? 4 : 2 * capacity;
  auto larger = std::make_unique<FreeBlock[]>(more);
  std::copy(others.get(), others.get() + capacity, larger.get());
  others = std::move(larger);
  capacity = more;
}

}  // namespace shardwise
