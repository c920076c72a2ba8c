#include "simulator/memory/pinned_memory.hpp"

#include <algorithm>
#include <bit>

#include "catalog/require.hpp"

namespace shardwise {

Bytes pinned_block_size(Bytes request, const PinnedMemorySettings& settings) {
  require(request >= Bytes{}, "a request for memory is not negative");
  if (request == Bytes{}) return Bytes{};
  if (settings.round_limit && request > *settings.round_limit) return request;
  const auto size = static_cast<std::uint64_t>(request.value);
  require(size <= std::uint64_t{1} << 62, "a pinned buffer is smaller than 4 EiB");
  return Bytes(static_cast<std::int64_t>(std::bit_ceil(size)));
}

void PinnedMemory::allocate(Bytes request) {
  const Bytes size = pinned_block_size(request, settings_);
  if (size == Bytes{}) return;
  Count& count = blocks_[size];
  if (count.cached > 0) {
    --count.cached;
  } else {
    reserved_ += size;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
  }
  ++count.in_use;
  allocated_ += size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
}

void PinnedMemory::free(Bytes request) {
  const Bytes size = pinned_block_size(request, settings_);
  if (size == Bytes{}) return;
  Count& count = blocks_[size];
  require(count.in_use > 0, "only an allocated pinned buffer is freed");
  --count.in_use;
  allocated_ -= size;
  if (settings_.cache_limit && size > *settings_.cache_limit) {
    reserved_ -= size;
  } else {
    ++count.cached;
  }
}

void PinnedMemory::empty_cache() {
  for (auto& [size, count] : blocks_) {
    reserved_ -= count.cached * size;
    count.cached = 0;
  }
}

}  // namespace shardwise
