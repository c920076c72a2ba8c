// DeviceMemory: what CUDA has left for segments, and the addresses it gives them.
//
// cudaMalloc and cuMemCreate succeed while reserved + asked <= capacity: physical pages can be
// combined at will, so the GPU itself never fragments. Addresses only grow, and start on a
// multiple of the largest page of an expandable segment. Without a capacity the limit is 4 EiB, so
// that no sum of bytes overflows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "catalog/require.hpp"
#include "catalog/units.hpp"
#include "simulator/memory/allocator_settings.hpp"

namespace shardwise {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::optional<Bytes> capacity) : capacity_(capacity) {}

  bool has_room(Bytes size) const { return reserved_ + size <= capacity_.value_or(most); }

  // REQUIRES: has_room(size).
  void take(Bytes size) {
    reserved_ += size;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
    ++takes_;
  }
  // REQUIRES: a capacity.
  void raise_capacity(Bytes to) { capacity_ = to; }
  void give_back(Bytes size) {
    reserved_ -= size;
    ++gives_;
  }

  // REQUIRES: size < 2 EiB.
  Bytes new_address_range(Bytes size) {
    require(next_address_ <= most, "segments of 4 EiB in all are enough for one play");
    const Bytes start = next_address_;
    next_address_ = round_up(start + size, large_segment_size);
    return start;
  }

  std::optional<Bytes> capacity() const { return capacity_; }
  Bytes reserved() const { return reserved_; }
  Bytes peak_reserved() const { return peak_reserved_; }
  std::int64_t takes() const { return takes_; }
  std::int64_t gives() const { return gives_; }
  void reset_peak() { peak_reserved_ = reserved_; }

 private:
  static constexpr Bytes most{std::int64_t{1} << 62};

  std::optional<Bytes> capacity_;
  Bytes reserved_;
  Bytes peak_reserved_;
  Bytes next_address_ = large_segment_size;
  std::int64_t takes_ = 0;
  std::int64_t gives_ = 0;
};

}  // namespace shardwise
