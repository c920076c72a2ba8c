// A play on a card that grows by what it misses.
#include "tests/catch.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

StageMemory on_growing_card(const SmallPlay& gpu, Bytes at_first) {
  PlayVariation how;
  how.raises_capacity = true;
  return gpu.play(how, at_first);
}

}  // namespace

// It ends between what tensors hold at their peak, where it began, and what the allocator takes
// where nobody stops it. A card of that size from the beginning gives its cache back later, and may
// lack a segment or two of 20 MiB for it.
TEST_CASE("what a play misses on a card that grows is what it needs", "[memory_play]") {
  int grew = 0;
  for (const int sequence : {512, 1024, 3072, 8192})
    for (const char* recompute : {"none", "selective-op", "full"}) {
      CAPTURE(sequence, recompute);
      const SmallPlay gpu(sequence, recompute);
      const MemoryPeak free = gpu.play().peak();
      const StageMemory grown = on_growing_card(gpu, free.allocated);
      CHECK_FALSE(grown.ran_out);
      const Bytes least = *grown.capacity;
      CHECK(least >= free.allocated);
      CHECK(least <= free.reserved);
      CHECK_FALSE(gpu.play({}, least + Bytes(40 << 20)).ran_out);
      if (least == free.allocated) continue;
      ++grew;
      CHECK(gpu.play({}, free.allocated).ran_out);
    }
  CHECK(grew > 6);
}

TEST_CASE("a card that is large enough does not grow", "[memory_play]") {
  const SmallPlay gpu(1024, "none");
  const Bytes enough = gpu.play().peak().reserved;
  CHECK(*on_growing_card(gpu, enough).capacity == enough);
}

}  // namespace shardwise
