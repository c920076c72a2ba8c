// A play on a card that grows by what it misses.
#include <algorithm>

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

// The card grows as it would without an end, by the same steps, to the first that is enough: half
// way from where it begins to where it would end, and further than that, which it never comes to.
// Where it begins with enough, no layer is played: the model is loaded, and nothing more.
TEST_CASE("a card that has grown enough is not played further", "[memory_play]") {
  const SmallPlay gpu(3072, "none");
  const StageMemory free = gpu.play();
  const Bytes from = free.peak().allocated;
  PlayVariation how;
  how.raises_capacity = true;
  const Bytes whole = *gpu.play(how, from).capacity;
  REQUIRE(whole > from);
  how.raised_enough = Bytes((from + whole).value / 2);
  const Bytes ended = *gpu.play(how, from).capacity;
  CHECK(ended >= *how.raised_enough);
  CHECK(ended <= whole);
  how.raised_enough = whole + Bytes(1);
  CHECK(*gpu.play(how, from).capacity == whole);
  how.raised_enough = from;
  const StageMemory loaded = gpu.play(how, from);
  CHECK(*loaded.capacity == from);
  CHECK(loaded.after_step == free.loaded);
}

// Of 150 MiB 100 are taken, and 100 more are missed while nothing is cached: the card grows to 200,
// and all is as on one of 200. Then the first 100 are given back for 300, which still lack 200.
TEST_CASE("a growing card tells whether it has given anything back before", "[memory_play]") {
  constexpr std::int64_t mib = 1 << 20;
  MemoryLedger ledger({}, Bytes(150 * mib), true);
  Holding first = ledger.open(100 * mib, MemoryCategory::weights);
  ledger.open(100 * mib, MemoryCategory::weights);
  CHECK(*ledger.capacity() == Bytes(200 * mib));
  CHECK(ledger.kept_all());
  ledger.close(first);
  CHECK(ledger.kept_all());
  ledger.open(300 * mib, MemoryCategory::weights);
  CHECK(*ledger.capacity() == Bytes(400 * mib));
  CHECK_FALSE(ledger.kept_all());
}

// Plays that begin with some rooms between what the model takes and what the allocator takes at
// most. One that kept all is compared with the whole play on a card as large as it has grown to.
TEST_CASE("a card that kept all goes the way of one that was as large at once", "[memory_play]") {
  int kept = 0, gave_back = 0;
  for (const int sequence : {256, 512, 1024, 3072, 8192})
    for (const char* recompute : {"none", "selective-op", "full"}) {
      const SmallPlay gpu(sequence, recompute);
      const StageMemory free = gpu.play();
      const Bytes most = std::max(free.first_step.reserved, free.steady.reserved);
      for (int part = 1; part <= 32; ++part) {
        const Bytes from(free.loaded.value + (most - free.loaded).value * part / 32 - 1);
        CAPTURE(sequence, recompute, part);
        const StageMemory grown = on_growing_card(gpu, from);
        const Bytes to = *grown.capacity;
        if (to == from) continue;
        if (!grown.kept_all) {
          ++gave_back;
          continue;
        }
        ++kept;
        const StageMemory larger = on_growing_card(gpu, to);
        CHECK(*larger.capacity == to);
        CHECK(larger.first_step.allocated == grown.first_step.allocated);
        CHECK(larger.first_step.reserved == grown.first_step.reserved);
        CHECK(larger.steady.allocated == grown.steady.allocated);
        CHECK(larger.steady.reserved == grown.steady.reserved);
        CHECK(larger.after_step == grown.after_step);
      }
    }
  CHECK(kept > 0);
  CHECK(gave_back > 0);
}

}  // namespace shardwise
