// The streams of tests of allocators.
#pragma once

#include "simulator/memory/caching_allocator.hpp"
#include "simulator/memory/stage_holdings.hpp"  // of gathers and reductions

namespace shardwise {

inline constexpr StreamId compute_stream{0};

}  // namespace shardwise
