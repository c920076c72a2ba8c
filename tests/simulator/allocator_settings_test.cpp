// Numbers from the rules in pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp @001074d250
// (round_size, roundup_power2_next_division) and c10/core/AllocatorConfig.cpp @065861fba7.
#include "simulator/memory/allocator_settings.hpp"

#include "catalog/require.hpp"
#include "simulator/memory/caching_allocator.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

using namespace literals;

TEST_CASE("roundup_power2_divisions") {
  AllocatorSettings settings;
  settings.roundup_power2_divisions = uniform_divisions(4);
  CachingAllocator a(settings);
  // roundup_power2_next_division: 1200 KiB lies between 1024 and 2048 KiB, whose quarters are 1280,
  // 1536, 1792: it becomes 1280 KiB. 2048 B = 512 B x 4 is not above the limit, 2049 B is: between
  // 2048 and 4096 B the steps are 512 B, so 2560 B.
  CHECK(a.size(*a.allocate(1200_KiB)) == 1280_KiB);
  CHECK(a.size(*a.allocate(2048_B)) == 2048_B);
  CHECK(a.size(*a.allocate(2049_B)) == 2560_B);
  CHECK(a.size(*a.allocate(1025_B)) == 1536_B);  // not above 2048 B: up to 512 B as ever
  CHECK(a.size(*a.allocate(4097_B)) == 5_KiB);   // steps of 1024 B between 4096 and 8192 B

  SECTION("one division is none") {
    // pytorch/pytorch#161139: 514 MiB stay 514 MiB with 1 and become 768 MiB with 2.
    settings.roundup_power2_divisions = uniform_divisions(1);
    CachingAllocator one(settings);
    one.allocate(514_MiB);
    CHECK(one.reserved() == 514_MiB);
    settings.roundup_power2_divisions = uniform_divisions(2);
    CachingAllocator two(settings);
    two.allocate(514_MiB);
    CHECK(two.reserved() == 768_MiB);
  }
  SECTION("each interval has its own") {
    // AllocatorConfig::roundup_power2_divisions: [0] is below 2 MiB, [5] is 32 to 64 MiB, [15] is
    // from 32 GiB on.
    settings.roundup_power2_divisions = {};
    settings.roundup_power2_divisions[5] = 2;
    settings.roundup_power2_divisions[15] = 2;
    CachingAllocator each(settings);
    each.allocate(30_MiB);
    CHECK(each.reserved() == 30_MiB);
    each.allocate(34_MiB);  // halves of 32 to 64 MiB: 48 MiB
    CHECK(each.reserved() == 78_MiB);
    each.allocate(66_MiB);
    CHECK(each.reserved() == 144_MiB);
    each.reset();
    each.allocate(130_GiB);  // halves of 128 to 256 GiB: 192 GiB
    CHECK(each.reserved() == 192_GiB);
  }
}

TEST_CASE("settings that PyTorch refuses are all named") {
  // parseMaxSplitSize, parseMaxNonSplitRoundingSize (>= 20 MiB),
  // parseRoundUpPower2Divisions (powers of two), parseGarbageCollectionThreshold ((0, 1)).
  AllocatorSettings bad;
  bad.max_split_size = 19_MiB;
  bad.max_non_split_rounding = 1_MiB;
  bad.roundup_power2_divisions[3] = 3;
  bad.garbage_collection_threshold = 1.0;
  bad.process_limit = Bytes(-1);
  const Problems problems = check(bad, "--alloc-conf");
  REQUIRE(problems.size() == 5);
  CHECK(problems[0].where == "--alloc-conf");
  CHECK(problems[0].what == "max_split_size must be at least 20 MiB, got 19 MiB");
  CHECK(problems[2].what == "roundup_power2_divisions must be powers of two, or 0 for none, got 3");
  CHECK_THROWS_AS(CachingAllocator(bad), BrokenInvariant);
  CHECK(check({}, "").empty());
  AllocatorSettings smallest;
  smallest.max_split_size = 20_MiB;
  CHECK(check(smallest, "").empty());
}

}  // namespace
}  // namespace shardwise
