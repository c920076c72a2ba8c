// The streams of tests of allocators.
#pragma once

#include "simulator/memory/caching_allocator.hpp"

namespace shardwise {

inline constexpr StreamId compute_stream{0};
inline constexpr StreamId gather_stream{1};
inline constexpr StreamId reduce_stream{2};

}  // namespace shardwise
