// Sequences played by hand from PyTorch's rules for expandable segments: Note [Expandable Segments]
// and the symbols named, in pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp @001074d250.
#include "simulator/memory/expandable_segment.hpp"

#include <vector>

#include "simulator/memory/caching_allocator.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/memory_layout.hpp"
#include "tests/simulator/streams.hpp"

namespace shardwise {
namespace {

using namespace literals;

AllocatorSettings expandable() {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  return settings;
}

TEST_CASE("expandable segments grow by pages of 20 MiB, and of 2 MiB for small blocks") {
  CachingAllocator a(expandable());
  // map_block maps the pages that hold the request; the rest of the last page is a free block,
  // which the next allocation uses up before more is mapped.
  a.allocate(11_MiB);
  CHECK(layout(a) == Layout{"s0 large 20M: 11M 9M-"});
  a.allocate(30_MiB);  // 9 MiB are there, 21 are missing: two pages
  CHECK(layout(a) == Layout{"s0 large 60M: 11M 30M 19M-"});
  a.allocate(19_MiB - 512_B);  // should_split: down to 512 B, in the large pool too
  CHECK(layout(a) == Layout{"s0 large 60M: 11M 30M 19922432 512-"});
  a.allocate(512_B);  // a small block never takes from the large pool
  a.allocate(2_MiB, gather_stream);
  CHECK(layout(a) == Layout{"s0 large 60M: 11M 30M 19922432 512-", "s0 small 2M: 512 2096640-",
                            "s1 large 20M: 2M 18M-"});
  CHECK(a.reserved() == 82_MiB);
}

TEST_CASE("growing sizes: slivers in segments, none in an expandable one") {
  // Note [Expandable Segments]: N-sized blocks are freed, N+1-sized ones follow. Four of 32 MiB,
  // then four of 34 MiB: no 32 MiB segment holds one of 34, the expandable one is tiled anew.
  const auto play = [](CachingAllocator& a) {
    std::vector<CachingAllocator::BlockId> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(*a.allocate(32_MiB));
    for (const auto block : blocks) a.free(block);
    for (int i = 0; i < 4; ++i) a.allocate(34_MiB);
  };
  CachingAllocator segments;
  play(segments);
  CHECK(segments.reserved() == 264_MiB);  // 4 x 32 + 4 x 34
  CachingAllocator one(expandable());
  play(one);
  // 4 x 32 = 128 MiB are 7 pages, 140 MiB; 4 x 34 = 136 MiB fit.
  CHECK(layout(one) == Layout{"s0 large 140M: 34M 34M 34M 34M 4M-"});
}

TEST_CASE("expandable segments give back whole free pages and fill the lowest hole again") {
  CachingAllocator a(expandable());
  const auto x = a.allocate(10_MiB);
  const auto y = a.allocate(50_MiB);
  const auto z = a.allocate(20_MiB);
  CHECK(layout(a) == Layout{"s0 large 80M: 10M 50M 20M"});
  // y is [10, 60): the whole pages in it are [20, 40) and [40, 60). [unmap_block]
  a.free(*y);
  a.empty_cache();
  CHECK(layout(a) == Layout{"s0 large 20M: 10M 10M-", "s0 large 20M: 20M"});
  CHECK(a.reserved() == 40_MiB);
  // find_expandable_block: the hole with the free 10 MiB before it has room for 50 MiB, exactly.
  const auto again = a.allocate(50_MiB);
  CHECK(layout(a) == Layout{"s0 large 80M: 10M 50M 20M"});
  // With 30 MiB instead, one page is enough: 10 MiB + one page = 30 MiB.
  a.free(*again);
  a.empty_cache();
  a.allocate(30_MiB);
  CHECK(layout(a) == Layout{"s0 large 40M: 10M 30M", "s0 large 20M: 20M"});
  // 21 MiB do not fit into the 20 MiB that are left of the hole: at the end.
  a.allocate(21_MiB);
  CHECK(layout(a) == Layout{"s0 large 40M: 10M 30M", "s0 large 60M: 20M 21M 19M-"});
  // With x and z gone, the page of x has 10 MiB in use by nobody but ends in the block of 30 MiB.
  a.free(*x);
  a.free(*z);
  a.empty_cache();
  CHECK(layout(a) == Layout{"s0 large 40M: 10M- 30M", "s0 large 40M: 21M 19M-"});
}

TEST_CASE("expandable segments: an exact hole is filled, and the last page ends the segment") {
  CachingAllocator a(expandable());
  const auto x = a.allocate(20_MiB);
  const auto y = a.allocate(20_MiB);
  const auto z = a.allocate(20_MiB);
  a.free(*y);
  a.empty_cache();
  CHECK(layout(a) == Layout{"s0 large 20M: 20M", "s0 large 20M: 20M"});
  const auto again = a.allocate(20_MiB);
  CHECK(layout(a) == Layout{"s0 large 60M: 20M 20M 20M"});
  for (const auto block : {*x, *z, *again}) a.free(block);
  a.empty_cache();
  CHECK(layout(a).empty());
  CHECK(a.reserved() == 0_B);
}

TEST_CASE("expandable segments: holes are filled before the block that can still grow") {
  CachingAllocator a(expandable());
  const auto hole = a.allocate(9_MiB);
  a.allocate(3_MiB);
  CHECK(layout(a) == Layout{"s0 large 20M: 9M 3M 8M-"});
  a.free(*hole);
  // 7 MiB: the smallest fit is the 8 MiB at the end, but it counts with the address space it could
  // grow into; the hole of 9 MiB does not grow and wins. [get_free_block, expandable_size]
  a.allocate(7_MiB);
  CHECK(layout(a) == Layout{"s0 large 20M: 7M 2M- 3M 8M-"});
  // Without expandable segments the smallest one wins.
  CachingAllocator plain;
  const auto other = plain.allocate(9_MiB);
  plain.allocate(3_MiB);
  plain.free(*other);
  plain.allocate(7_MiB);
  CHECK(layout(plain) == Layout{"s0 large 20M: 9M- 3M 8M"});
}

TEST_CASE("expandable segments out of memory: free pages of any stream are unmapped first") {
  CachingAllocator a(expandable(), 100_MiB);
  const auto x = a.allocate(60_MiB, gather_stream);
  a.free(*x);
  const auto kept = a.allocate(5_MiB, gather_stream);
  // 80 MiB need 4 pages; 60 of 100 MiB are mapped, of which [20, 60) is free: one retry unmaps it.
  a.allocate(80_MiB, compute_stream);
  CHECK(a.alloc_retries() == 1);
  CHECK(layout(a) == Layout{"s1 large 20M: 5M 15M-", "s0 large 80M: 80M"});
  // Not even one page more; the 15 MiB belong to the other stream.
  CHECK(!a.allocate(1_MiB + 512_B, compute_stream));
  CHECK(a.reserved() == 100_MiB);
  a.free(*kept);
  CHECK(a.allocate(1_MiB + 512_B, compute_stream));
  CHECK(layout(a) == Layout{"s0 large 100M: 80M 1049088 19922432-"});
}

TEST_CASE("the process limit is held against segment sizes, not against the pages mapped") {
  // alloc_block compares total + alloc_size with the limit before it maps anything.
  AllocatorSettings settings = expandable();
  settings.process_limit = 39_MiB;
  CachingAllocator a(settings);
  a.allocate(16_MiB);  // one page, 4 MiB of it free
  // 9 MiB count as 20 MiB by get_allocation_size: 20 + 20 > 39.
  CHECK(!a.allocate(9_MiB));
  CHECK(a.out_of_memory()->segment == 20_MiB);
  CHECK(a.out_of_memory()->limit == 39_MiB);
  CHECK(a.reserved() == 20_MiB);
  // 18 MiB count as 18 MiB: 20 + 18 <= 39, and the page that is mapped oversteps the limit.
  CHECK(a.allocate(18_MiB));
  CHECK(a.reserved() == 40_MiB);
  CHECK(a.allocate(6_MiB));  // from the free rest, without a question
  // The smaller of both limits is what an answer shows.
  CachingAllocator both(settings, 30_MiB);
  CHECK(!both.allocate(50_MiB));
  CHECK(both.out_of_memory()->limit == 30_MiB);
}

}  // namespace
// 20 of 30 MiB are mapped, in one page. 21 MiB are two pages more, where 22 would be asked of CUDA
// without them: with 20 + 2 x 20 = 60 MiB there is room.
TEST_CASE("a capacity is raised by the pages that the latest request missed") {
  CachingAllocator a(expandable(), Bytes(30 << 20));
  REQUIRE(a.allocate(Bytes(20 << 20)));
  REQUIRE_FALSE(a.allocate(Bytes(21 << 20)));
  a.raise_capacity();
  CHECK(*a.capacity() == Bytes(60 << 20));
  CHECK(a.allocate(Bytes(21 << 20)));
  CHECK(a.reserved() == Bytes(60 << 20));
}

}  // namespace shardwise
