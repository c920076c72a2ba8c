// Numbers from PyTorch's rule (CachingHostAllocator.h @04456333a3, allocate: PowerOf2Ceil) and from
// what people measured with it.
#include "simulator/memory/pinned_memory.hpp"

#include "catalog/require.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

using namespace literals;

TEST_CASE("a pinned buffer takes the next power of two of host RAM") {
  CHECK(pinned_block_size(0_B) == 0_B);
  CHECK(pinned_block_size(1_B) == 1_B);
  CHECK(pinned_block_size(3_B) == 4_B);
  CHECK(pinned_block_size(4_GiB) == 4_GiB);
  // LMCache/LMCache#1147: 5.0 and 4.1 GiB took 8 GiB.
  CHECK(pinned_block_size(5_GiB) == 8_GiB);
  CHECK(pinned_block_size(4_GiB + 1_B) == 8_GiB);
  // pytorch/pytorch#150517: an up_proj of 18944 x 3584 in 16 bit, 129.5 MiB, took 256 MiB; one of
  // 14336 x 4096, 112 MiB, took 128 MiB.
  CHECK(pinned_block_size(18944 * (3584 * 2_B)) == 256_MiB);
  CHECK(pinned_block_size(14336 * (4096 * 2_B)) == 128_MiB);
  CHECK_THROWS_AS(pinned_block_size(Bytes(-1)), BrokenInvariant);
}

TEST_CASE("freed pinned buffers stay, and serve only requests of their own size") {
  PinnedMemory host;
  host.allocate(5_GiB);  // 8 GiB
  host.allocate(1_GiB);
  CHECK(host.allocated() == 9_GiB);
  CHECK(host.reserved() == 9_GiB);
  host.free(5_GiB);
  CHECK(host.allocated() == 1_GiB);
  CHECK(host.reserved() == 9_GiB);
  host.allocate(2_GiB);  // the cached 8 GiB are never split: 2 GiB more
  CHECK(host.reserved() == 11_GiB);
  host.allocate(7_GiB);  // 8 GiB again: the cached block
  CHECK(host.reserved() == 11_GiB);
  host.allocate(7_GiB);
  CHECK(host.reserved() == 19_GiB);
  CHECK(host.allocated() == 19_GiB);
  host.free(7_GiB);
  host.free(2_GiB);
  CHECK(host.reserved() == 19_GiB);
  host.empty_cache();  // what is in use stays: 1 + 8 GiB
  CHECK(host.reserved() == 9_GiB);
  host.allocate(2_GiB);  // nothing is cached any more
  CHECK(host.reserved() == 11_GiB);
  CHECK(host.peak_allocated() == 19_GiB);
  CHECK(host.peak_reserved() == 19_GiB);
}

TEST_CASE("limits of rounding and of caching") {
  PinnedMemorySettings settings;
  settings.round_limit = 1_GiB;
  settings.cache_limit = 2_GiB;
  PinnedMemory host(settings);
  host.allocate(1000_MiB);  // not above the limit: 1 GiB
  CHECK(host.reserved() == 1_GiB);
  host.allocate(1_GiB + 1_B);  // above it: as it is
  CHECK(host.reserved() == 2_GiB + 1_B);
  host.free(1_GiB + 1_B);  // cached
  CHECK(host.reserved() == 2_GiB + 1_B);
  host.allocate(1_GiB + 2_B);  // of another size: not reused
  CHECK(host.reserved() == 3_GiB + 3_B);
  host.allocate(5_GiB);
  host.free(5_GiB);  // above the limit of the cache: gone
  CHECK(host.reserved() == 3_GiB + 3_B);
  host.allocate(2_GiB);
  host.free(2_GiB);  // not above it
  CHECK(host.reserved() == 5_GiB + 3_B);
  // "Up to the limit" is rounded, even where the limit is no power of two.
  settings.round_limit = 3_MiB;
  CHECK(pinned_block_size(3_MiB, settings) == 4_MiB);
  CHECK(pinned_block_size(3_MiB + 1_B, settings) == 3_MiB + 1_B);
}

TEST_CASE("a pinned buffer is freed once, and nothing takes nothing") {
  PinnedMemory host;
  host.allocate(0_B);
  host.free(0_B);
  host.allocate(3_MiB);
  host.free(3_MiB);
  CHECK_THROWS_AS(host.free(3_MiB), BrokenInvariant);
  CHECK(host.reserved() == 4_MiB);
}

}  // namespace
}  // namespace shardwise
