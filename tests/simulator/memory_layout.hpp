// What a CachingAllocator holds, as lines that a test can compare with and a reader can check:
//
//   s1 large 20M: 3M 17M-
//
// is a segment of the large pool of stream 1, 20 MiB of memory, whose first block of 3 MiB is
// allocated and whose second of 17 MiB is free. "?" marks a block that is freed but waits.
#pragma once

#include <string>
#include <vector>

#include "simulator/memory/caching_allocator.hpp"

namespace shardwise {

using Layout = std::vector<std::string>;

inline std::string short_text(Bytes size) {
  if (size.value % (1 << 20) == 0) return std::to_string(size.value >> 20) + "M";
  if (size.value % 1024 == 0) return std::to_string(size.value >> 10) + "K";
  return std::to_string(size.value);
}

inline Layout layout(const CachingAllocator& allocator) {
  Layout all;
  for (const SegmentView& segment : allocator.snapshot()) {
    std::string line = "s" + std::to_string(static_cast<int>(segment.stream));
    line += (segment.small ? " small " : " large ") + short_text(segment.size) + ":";
    for (const BlockView& block : segment.blocks) {
      line += " " + short_text(block.size);
      if (block.state == BlockState::free) line += "-";
      if (block.state == BlockState::pending) line += "?";
    }
    all.push_back(line);
  }
  return all;
}

}  // namespace shardwise
