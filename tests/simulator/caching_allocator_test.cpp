// Sequences played by hand from PyTorch's rules, down to the blocks of every segment.
//
// Each test derives its numbers from the rules it names by their symbol in pytorch/pytorch
// c10/cuda/CUDACachingAllocator.cpp @001074d250.
#include "simulator/memory/caching_allocator.hpp"

#include <cstdint>
#include <vector>

#include "catalog/require.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/memory_layout.hpp"
#include "tests/simulator/streams.hpp"

namespace shardwise {
namespace {

using namespace literals;

AllocatorSettings with_max_split(Bytes size) {
  AllocatorSettings settings;
  settings.max_split_size = size;
  return settings;
}

TEST_CASE("small requests: 512-byte blocks, packed into one 2 MiB segment") {
  CachingAllocator a;
  // round_size: 1 -> 512, 512 -> 512, 513 -> 1024. get_allocation_size: <= 1 MiB -> 2 MiB.
  // should_split (small pool): rest >= 512 B, so each takes its rounded size and no more.
  a.allocate(1_B);
  a.allocate(512_B);
  a.allocate(513_B);
  // The rest: 2097152 - 512 - 512 - 1024 = 2095104 B = 2046 KiB.
  CHECK(layout(a) == Layout{"s0 small 2M: 512 512 1K 2046K-"});
  CHECK(a.allocated() == 2048_B);
  CHECK(a.reserved() == 2_MiB);
  // 2046 KiB hold one more MiB and then 1022 KiB: the third MiB needs a segment of its own.
  a.allocate(1_MiB);
  a.allocate(1_MiB);
  CHECK(layout(a) == Layout{"s0 small 2M: 512 512 1K 1M 1022K-", "s0 small 2M: 1M 1M-"});
  // A rest of exactly 512 B is still split off: 1022 KiB - 512 B = 1046016 B.
  a.allocate(1046016_B);
  CHECK(layout(a).front() == "s0 small 2M: 512 512 1K 1M 1046016 512-");
}

TEST_CASE("1 MiB is small, one byte more is large") {
  CachingAllocator a;
  a.allocate(1_MiB);
  // round_size: 1 MiB + 1 -> 1 MiB + 512 B = 1049088 B, kSmallSize < it < kMinLargeAlloc: 20 MiB.
  // The rest is 20971520 - 1049088 = 19922432 B, more than 1 MiB: split off.
  a.allocate(1_MiB + 1_B);
  CHECK(layout(a) == Layout{"s0 small 2M: 1M 1M-", "s0 large 20M: 1049088 19922432-"});
  CHECK(a.reserved() == 22_MiB);
}

TEST_CASE("from 10 MiB on a segment is the request, rounded up to 2 MiB") {
  CachingAllocator a;
  // get_allocation_size: 10 MiB - 512 B < kMinLargeAlloc -> 20 MiB; 10 MiB -> 10 MiB;
  // 10 MiB + 1 B -> 12 MiB.
  a.allocate(10_MiB - 512_B);
  CHECK(a.reserved() == 20_MiB);
  // The cached 10 MiB + 512 B would serve both others, so they go to other streams.
  a.allocate(10_MiB, gather_stream);
  CHECK(a.reserved() == 30_MiB);
  a.allocate(10_MiB + 1_B, reduce_stream);
  CHECK(a.reserved() == 42_MiB);
  CHECK(layout(a) == Layout{"s0 large 20M: 10485248 10486272-", "s1 large 10M: 10M",
                            "s2 large 12M: 10486272 2096640-"});
}

TEST_CASE("a large block is handed out whole unless more than 1 MiB is left over") {
  CachingAllocator a;
  // should_split (large pool): remaining > kSmallSize. 11 MiB of a 12 MiB segment leaves exactly
  // 1 MiB: not split, all 12 MiB count as allocated [alloc_found_block].
  const auto whole = a.allocate(11_MiB);
  CHECK(layout(a) == Layout{"s0 large 12M: 12M"});
  CHECK(a.allocated() == 12_MiB);
  CHECK(a.size(*whole) == 12_MiB);
  // 512 B less leave 1 MiB + 512 B, which is enough.
  a.free(*whole);
  a.allocate(11_MiB - 512_B);
  CHECK(layout(a) == Layout{"s0 large 12M: 11533824 1049088-"});
  CHECK(a.allocated() == 11_MiB - 512_B);
}

TEST_CASE("best fit: the smallest block that is large enough, then the lowest address") {
  CachingAllocator a;
  const auto b30 = a.allocate(30_MiB);
  const auto b14 = a.allocate(14_MiB);
  const auto b12 = a.allocate(12_MiB);
  const auto c12 = a.allocate(12_MiB);
  // In this order, so that neither the latest nor the first freed block is the best fit.
  a.free(*c12);
  a.free(*b12);
  a.free(*b30);
  a.free(*b14);
  // get_free_block: lower_bound by (size, address). 12 MiB blocks tie; the first was made first.
  a.allocate(11_MiB);
  CHECK(layout(a) == Layout{"s0 large 30M: 30M-", "s0 large 14M: 14M-", "s0 large 12M: 12M",
                            "s0 large 12M: 12M-"});
  // 13 MiB: 14 MiB is the smallest that fits, its rest of 1 MiB stays inside.
  a.allocate(13_MiB);
  // 15 MiB: only 30 MiB fits; 15 MiB are split off.
  a.allocate(15_MiB);
  CHECK(layout(a) == Layout{"s0 large 30M: 15M 15M-", "s0 large 14M: 14M", "s0 large 12M: 12M",
                            "s0 large 12M: 12M-"});
  CHECK(a.reserved() == 68_MiB);
}

TEST_CASE("streams and size classes never share cached blocks") {
  CachingAllocator a;
  a.free(*a.allocate(16_MiB, compute_stream));
  a.free(*a.allocate(4_KiB, compute_stream));
  // get_free_block: (*it)->stream != p.stream() is a miss; get_pool keeps small from large.
  a.allocate(16_MiB, gather_stream);
  a.allocate(4_KiB, gather_stream);
  CHECK(layout(a) == Layout{"s0 large 16M: 16M-", "s0 small 2M: 2M-", "s1 large 16M: 16M",
                            "s1 small 2M: 4K 2044K-"});
  CHECK(a.reserved() == 36_MiB);
  CHECK(a.allocated() == 16_MiB + 4_KiB);
}

TEST_CASE("freed blocks merge with free neighbours, and only a whole segment goes back") {
  CachingAllocator a;
  const auto x = a.allocate(4_MiB);
  const auto y = a.allocate(5_MiB);
  const auto z = a.allocate(6_MiB);
  CHECK(layout(a) == Layout{"s0 large 20M: 4M 5M 6M 5M-"});
  // free_block: z merges with the free rest, x has no free neighbour, y joins both sides.
  a.free(*z);
  CHECK(layout(a) == Layout{"s0 large 20M: 4M 5M 11M-"});
  a.free(*x);
  CHECK(layout(a) == Layout{"s0 large 20M: 4M- 5M 11M-"});
  // release_blocks: a split segment stays.
  a.empty_cache();
  CHECK(a.reserved() == 20_MiB);
  a.free(*y);
  CHECK(layout(a) == Layout{"s0 large 20M: 20M-"});
  CHECK(a.allocated() == 0_B);
  CHECK(a.reserved() == 20_MiB);
  a.empty_cache();
  CHECK(layout(a).empty());
  CHECK(a.reserved() == 0_B);
  CHECK(a.peak_allocated() == 15_MiB);
  CHECK(a.peak_reserved() == 20_MiB);
  a.reset_peaks();
  CHECK(a.peak_allocated() == 0_B);
  CHECK(a.peak_reserved() == 0_B);
}

TEST_CASE("a miss over capacity releases the cache, which counts as a retry, and tries again") {
  CachingAllocator a({}, 64_MiB);
  a.free(*a.allocate(40_MiB));
  const auto kept = a.allocate(4_MiB);  // best fit is the 40 MiB block: split, 36 MiB left
  CHECK(layout(a) == Layout{"s0 large 40M: 4M 36M-"});
  // 38 MiB: 40 + 38 > 64, and the split segment cannot be released [release_blocks]. Out of memory,
  // with 36 MiB cached and 24 MiB never taken: fragmentation.
  CHECK(!a.allocate(38_MiB));
  CHECK(a.alloc_retries() == 1);
  const OutOfMemory expected{38_MiB, 38_MiB, 4_MiB, 40_MiB, 64_MiB};
  CHECK(a.out_of_memory() == expected);
  CHECK(a.allocated() == 4_MiB);
  // With the segment whole again, the release makes room.
  a.free(*kept);
  CHECK(a.allocate(42_MiB));
  CHECK(layout(a) == Layout{"s0 large 42M: 42M"});
  const AllocatorCounters counters{2, 1, 2, 1};  // retries, failures, cudaMalloc, cudaFree
  CHECK(a.counters() == counters);
}

TEST_CASE("memory is asked for in segments: 1.1 MiB can fail with 19 MiB left") {
  CachingAllocator a({}, 39_MiB);
  a.allocate(1153434_B, gather_stream);  // 1.1 MiB: a segment of 20 MiB [get_allocation_size]
  // 39 - 20 = 19 MiB are left, and 18.9 MiB are free on another stream; 20 MiB are asked for.
  CHECK(!a.allocate(1153434_B, compute_stream));
  CHECK(a.out_of_memory()->segment == 20_MiB);
  CHECK(a.out_of_memory()->reserved == 20_MiB);
  CHECK(a.allocate(1_MiB, compute_stream));  // a small one still fits
  CHECK(a.reserved() == 22_MiB);
}

// 20 of 30 MiB are taken, and 21 MiB take a segment of 22: with 42 MiB there would be room.
TEST_CASE("a capacity is raised by what the latest request missed") {
  CachingAllocator a({}, Bytes(30 << 20));
  REQUIRE(a.allocate(Bytes(20 << 20)));
  REQUIRE_FALSE(a.allocate(Bytes(21 << 20)));
  a.raise_capacity();
  CHECK(*a.capacity() == Bytes(42 << 20));
  CHECK(a.allocate(Bytes(21 << 20)));
  CHECK(a.reserved() == Bytes(42 << 20));
}

TEST_CASE("max_split_size: oversize blocks are whole and not for small requests") {
  CachingAllocator a(with_max_split(32_MiB));
  a.free(*a.allocate(64_MiB));
  // get_free_block: 8 MiB < 32 MiB <= 64 MiB: not taken, a segment of 20 MiB is made instead.
  a.allocate(8_MiB);
  CHECK(layout(a) == Layout{"s0 large 64M: 64M-", "s0 large 20M: 8M 12M-"});
  // 44 MiB >= 32 MiB may take a block of less than 44 + 20 = 64 MiB: not this one.
  const auto b44 = a.allocate(44_MiB);
  CHECK(a.reserved() == 128_MiB);
  // 44 MiB + 512 B may: 64 MiB < 64 MiB + 512 B. should_split: never at or above max_split_size.
  const auto b64 = a.allocate(44_MiB + 512_B);
  CHECK(a.reserved() == 128_MiB);
  CHECK(a.size(*b44) == 44_MiB);
  CHECK(a.size(*b64) == 64_MiB);
}

TEST_CASE("max_non_split_rounding: how much larger an oversize block may be") {
  AllocatorSettings settings = with_max_split(32_MiB);
  settings.max_non_split_rounding = 40_MiB;
  CachingAllocator a(settings);
  a.free(*a.allocate(80_MiB));
  a.allocate(40_MiB);  // 80 MiB is not less than 40 + 40
  CHECK(a.reserved() == 120_MiB);
  a.allocate(41_MiB);  // but less than 41 + 40
  CHECK(a.reserved() == 120_MiB);
}

TEST_CASE("max_split_size of 20 MiB: a 20 MiB segment that is whole again serves nobody small") {
  // 5 MiB get a segment of 20 MiB, split because 5 MiB < max_split_size. Freed, it is one block of
  // 20 MiB >= max_split_size, and get_free_block refuses it to the next 5 MiB.
  CachingAllocator a(with_max_split(20_MiB));
  a.free(*a.allocate(5_MiB));
  a.free(*a.allocate(5_MiB));
  CHECK(layout(a) == Layout{"s0 large 20M: 20M-", "s0 large 20M: 20M-"});
}

TEST_CASE("max_split_size: oversize blocks are released before the whole cache is") {
  // release_available_cached_blocks comes before release_cached_blocks and is no retry.
  CachingAllocator a(with_max_split(32_MiB), 200_MiB);
  const auto b96 = a.allocate(96_MiB);
  const auto b64 = a.allocate(64_MiB);
  const auto b24 = a.allocate(24_MiB);
  a.free(*b24);
  a.free(*b64);
  a.free(*b96);  // reserved: 184 of 200
  SECTION("one block that is at least as large as the request and max_split_size") {
    // 40 MiB: neither 64 nor 96 is less than 40 + 20, so a miss. The smallest of >= 40: 64 MiB.
    a.allocate(40_MiB);
    CHECK(layout(a) == Layout{"s0 large 96M: 96M-", "s0 large 24M: 24M-", "s0 large 40M: 40M"});
  }
  SECTION("for a small request, one of max_split_size at least") {
    // 28 MiB: the block of 24 is too small, those of 64 and 96 are refused. 64 MiB >= 32 MiB goes.
    a.allocate(28_MiB);
    CHECK(layout(a) == Layout{"s0 large 96M: 96M-", "s0 large 24M: 24M-", "s0 large 28M: 28M"});
  }
  SECTION("else several, from the largest, until they have the size") {
    // 160 MiB: 96 + 64 = 160 is just enough; the block of 24 MiB is no oversize block and stays.
    a.allocate(160_MiB);
    CHECK(layout(a) == Layout{"s0 large 24M: 24M-", "s0 large 160M: 160M"});
  }
  CHECK(a.alloc_retries() == 0);
}

TEST_CASE("max_split_size: no more oversize blocks are released than it takes") {
  // 160 MiB beside 200 of 220: the two largest, 96 + 64 = 160, are just enough. The block of 40 MiB
  // is an oversize one too, and stays.
  CachingAllocator a(with_max_split(32_MiB), 220_MiB);
  const auto b40 = a.allocate(40_MiB);
  const auto b96 = a.allocate(96_MiB);
  const auto b64 = a.allocate(64_MiB);
  a.free(*b40);
  a.free(*b96);
  a.free(*b64);
  a.allocate(160_MiB);
  CHECK(layout(a) == Layout{"s0 large 40M: 40M-", "s0 large 160M: 160M"});
}

TEST_CASE("garbage collection frees unsplit large blocks of at least the average age") {
  AllocatorSettings settings;
  settings.process_limit = 200_MiB;
  settings.garbage_collection_threshold = 0.5;  // over 100 MiB of segments
  CachingAllocator a(settings);
  const auto b30 = a.allocate(30_MiB);
  const auto b40 = a.allocate(40_MiB);
  const auto b50 = a.allocate(50_MiB);  // three searches of the large pool so far
  a.free(*b30);                         // idle since search 3
  a.free(*a.allocate(30_MiB));          // search 4, a hit: idle since 4
  a.free(*b40);                         // idle since 4
  a.free(*a.allocate(40_MiB));          // search 5: idle since 5
  a.free(*b50);                         // idle since 5
  CHECK(a.reserved() == 120_MiB);
  // Search 6 misses with 120 > 100 MiB: target 20 MiB. Ages 2, 1, 1; average 4/3: the block of
  // 30 MiB is freed, and 30 >= 20 is enough. [garbage_collect_cached_blocks]
  a.allocate(60_MiB);
  CHECK(layout(a) == Layout{"s0 large 40M: 40M-", "s0 large 50M: 50M-", "s0 large 60M: 60M"});
  // Search 7 misses with 150 > 100 MiB: target 50. Ages 2 and 2, average 2: both go at once.
  a.allocate(70_MiB);
  CHECK(layout(a) == Layout{"s0 large 60M: 60M", "s0 large 70M: 70M"});
  CHECK(a.alloc_retries() == 0);
}

TEST_CASE("garbage collection needs a process limit") {
  // malloc: only if set_fraction. Without it the three blocks stay.
  AllocatorSettings settings;
  settings.garbage_collection_threshold = 0.5;
  CachingAllocator a(settings, 200_MiB);
  a.free(*a.allocate(60_MiB));
  a.free(*a.allocate(62_MiB));
  a.allocate(64_MiB);
  CHECK(a.reserved() == 186_MiB);
}

TEST_CASE("a block that another stream was recorded on waits for that stream") {
  CachingAllocator a;
  const auto block = a.allocate(16_MiB, gather_stream);
  a.record_stream(*block, compute_stream);
  a.free(*block);
  // free: allocated falls at once; insert_events: the memory cannot be used, and active stays.
  CHECK(a.allocated() == 0_B);
  CHECK(a.active() == 16_MiB);
  CHECK(layout(a) == Layout{"s1 large 16M: 16M?"});
  // The next all-gather needs memory of its own: the peak that FSDP's rate limiter avoids.
  const auto next = a.allocate(16_MiB, gather_stream);
  CHECK(a.reserved() == 32_MiB);
  a.free(*next);
  // process_events: done. Now both are free, and the older one is taken first.
  a.stream_done(compute_stream);
  CHECK(a.active() == 0_B);
  a.allocate(16_MiB, gather_stream);
  CHECK(layout(a) == Layout{"s1 large 16M: 16M", "s1 large 16M: 16M-"});
  CHECK(a.peak_allocated() == 16_MiB);
}

TEST_CASE("a block recorded on its own stream is freed at once") {
  CachingAllocator a;  // recordStream: ignored
  const auto block = a.allocate(16_MiB, gather_stream);
  a.record_stream(*block, gather_stream);
  a.free(*block);
  CHECK(layout(a) == Layout{"s1 large 16M: 16M-"});
}

TEST_CASE("waiting blocks do not merge, and wait for every stream, in the order of their frees") {
  CachingAllocator a;
  const auto x = a.allocate(4_MiB);
  const auto y = a.allocate(5_MiB);
  const auto z = a.allocate(3_MiB);
  for (const auto block : {*x, *y}) a.record_stream(block, gather_stream);
  a.record_stream(*y, reduce_stream);
  a.free(*x);
  const StreamMark after_x = a.mark(gather_stream);
  a.free(*y);
  a.free(*z);
  // try_merge_blocks: event_count > 0 blocks the merge of z with y.
  CHECK(layout(a) == Layout{"s0 large 20M: 4M? 5M? 11M-"});
  a.stream_done(gather_stream, after_x);
  CHECK(layout(a) == Layout{"s0 large 20M: 4M- 5M? 11M-"});
  a.stream_done(gather_stream);  // y still waits for the other one
  CHECK(layout(a) == Layout{"s0 large 20M: 4M- 5M? 11M-"});
  a.stream_done(reduce_stream);
  CHECK(layout(a) == Layout{"s0 large 20M: 20M-"});
}

TEST_CASE("out of memory waits for the streams before it gives up, and so does empty_cache") {
  CachingAllocator a({}, 40_MiB);
  const auto block = a.allocate(30_MiB);
  a.record_stream(*block, gather_stream);
  a.free(*block);
  // release_cached_blocks begins with synchronize_and_free_events: the 30 MiB settle and are freed.
  CHECK(a.allocate(36_MiB));
  CHECK(layout(a) == Layout{"s0 large 36M: 36M"});
  CHECK(a.alloc_retries() == 1);

  CachingAllocator b;
  const auto other = b.allocate(30_MiB);
  b.record_stream(*other, gather_stream);
  b.free(*other);
  b.empty_cache();
  CHECK(b.reserved() == 0_B);
}

TEST_CASE("nothing takes nothing, and 2^60 bytes are refused before CUDA is asked") {
  CachingAllocator a;
  const auto nothing = a.allocate(0_B);  // PyTorch's allocate(): no block for size 0
  REQUIRE(nothing);
  a.record_stream(*nothing, gather_stream);
  a.free(*nothing);
  CHECK(layout(a).empty());
  a.free(*a.allocate(30_MiB));
  CHECK(!a.allocate(Bytes(std::int64_t{1} << 60)));
  CHECK(a.alloc_retries() == 0);
  CHECK(a.reserved() == 30_MiB);
  CHECK(!a.out_of_memory()->limit);
  CHECK(!a.allocate(Bytes(INT64_MAX)));
  CHECK_THROWS_AS(a.allocate(Bytes(-1)), BrokenInvariant);
  // Without a capacity, memory still ends somewhere, and sums of bytes do not overflow.
  int exabytes = 0;
  while (a.allocate(Bytes((std::int64_t{1} << 60) - 1))) ++exabytes;
  CHECK(exabytes == 4);  // 2^62 bytes: the cached 30 MiB go for the fourth
}

TEST_CASE("a block is freed once") {
  CachingAllocator a;
  const auto block = a.allocate(30_MiB);
  a.free(*block);
  CHECK_THROWS_AS(a.free(*block), BrokenInvariant);
  CHECK_THROWS_AS(a.record_stream(*block, gather_stream), BrokenInvariant);
}

}  // namespace
}  // namespace shardwise
