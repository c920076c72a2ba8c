// Random sequences: CachingAllocator against the reference, step by step, and its invariants.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "simulator/memory/caching_allocator.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/reference_allocator.hpp"

namespace shardwise {
namespace {

using namespace literals;

struct Setting {
  const char* name = "";
  AllocatorSettings settings;
  std::optional<Bytes> capacity;
};

std::vector<Setting> settings_to_play() {
  AllocatorSettings plain;
  AllocatorSettings split = plain;
  split.max_split_size = 24_MiB;
  AllocatorSettings rounding = split;
  rounding.max_non_split_rounding = 40_MiB;
  AllocatorSettings divisions = plain;
  divisions.roundup_power2_divisions = uniform_divisions(4);
  divisions.roundup_power2_divisions[3] = 8;  // 8 MiB ... 16 MiB
  divisions.roundup_power2_divisions[4] = 0;  // 16 MiB ... 32 MiB
  AllocatorSettings collecting = plain;
  collecting.garbage_collection_threshold = 0.6;
  collecting.process_limit = 400_MiB;
  AllocatorSettings all = collecting;
  all.max_split_size = 20_MiB;
  AllocatorSettings expandable = plain;
  expandable.expandable_segments = true;
  AllocatorSettings expandable_split = expandable;
  expandable_split.max_split_size = 24_MiB;
  AllocatorSettings expandable_limit = expandable;
  expandable_limit.process_limit = 300_MiB;
  expandable_limit.garbage_collection_threshold = 0.5;
  return {
      {"default", plain, std::nullopt},
      {"default, little memory", plain, 300_MiB},
      {"max_split_size", split, 300_MiB},
      {"max_non_split_rounding", rounding, 500_MiB},
      {"roundup_power2_divisions", divisions, 400_MiB},
      {"garbage collection", collecting, 600_MiB},
      {"garbage collection and max_split_size", all, std::nullopt},
      {"expandable", expandable, std::nullopt},
      {"expandable, little memory", expandable, 300_MiB},
      {"expandable and max_split_size", expandable_split, 300_MiB},
      {"expandable and process limit", expandable_limit, 400_MiB},
  };
}

// The standard fixes what this engine yields, so the sequences are the same everywhere.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_()) % n; }
  bool coin() { return below(2) == 0; }
  Bytes size_up_to(Bytes largest) { return Bytes(1 + below(largest.value)); }
  StreamId stream_below(int n) { return static_cast<StreamId>(below(n)); }

 private:
  std::mt19937 engine_;
};

// Both allocators and what is allocated in both.
class Pair {
 public:
  Pair(const Setting& setting, unsigned seed)
      : model_(setting.settings, setting.capacity),
        reference_(setting.settings, setting.capacity),
        random_(seed) {}

  void step() {
    const auto kind = random_.below(100);
    if (kind < 44) {
      allocate();
    } else if (kind < 52) {
      touch();
    } else if (kind < 90) {
      free_one();
    } else if (kind < 98) {
      finish_stream();
    } else {
      model_.empty_cache();
      reference_.empty_cache();
    }
    peak_allocated_ = std::max(peak_allocated_, reference_.allocated);
    compare();
  }

  // Everything returns after the frees and empty_cache().
  void finish() {
    while (!live_.empty()) free_one();
    compare();
    CHECK(model_.snapshot() == reference_.snapshot());
    model_.empty_cache();
    reference_.empty_cache();
    compare();
    CHECK(model_.allocated() == 0_B);
    CHECK(model_.active() == 0_B);
    CHECK(model_.reserved() == 0_B);
    CHECK(model_.snapshot().empty());
  }

  void check_invariants() {
    const std::vector<SegmentView> segments = model_.snapshot();
    CHECK(segments == reference_.snapshot());
    Bytes reserved, allocated, active, last_end;
    for (const SegmentView& segment : segments) {
      CHECK(segment.address >= last_end);  // no overlap
      last_end = segment.address + segment.size;
      reserved += segment.size;
      Bytes blocks;
      for (const BlockView& block : segment.blocks) {
        CHECK(block.size > 0_B);
        blocks += block.size;
        if (block.state == BlockState::allocated) allocated += block.size;
        if (block.state != BlockState::free) active += block.size;
      }
      CHECK(blocks == segment.size);  // and no gap
    }
    CHECK(model_.reserved() == reserved);
    CHECK(model_.allocated() == allocated);
    CHECK(model_.active() == active);
    CHECK(reserved >= active);
    CHECK(active >= allocated);
  }

  // How often a touch was known to do nothing.
  int nothings() const { return nothings_; }

 private:
  struct Live {
    CachingAllocator::BlockId block;
    std::int64_t address = 0;
  };

  Bytes random_size() {
    const auto kind = random_.below(10);
    if (kind < 3) return random_.size_up_to(4_KiB);
    if (kind < 5) return random_.size_up_to(2_MiB);
    if (kind < 6) return (random_.below(40) + 1) * 1_MiB;  // the same few sizes again
    return random_.size_up_to(48_MiB);
  }

  void allocate() {
    const Bytes size = random_size();
    const StreamId stream = random_.below(4) < 3 ? StreamId{} : random_.stream_below(3);
    const auto block = model_.allocate(size, stream);
    const auto address = reference_.allocate(size.value, static_cast<int>(stream));
    REQUIRE(block.has_value() == address.has_value());
    if (block) live_.push_back({*block, *address});
  }

  // What comes and goes at once: the reference does both, and the model says how large it was.
  void touch() {
    const Bytes size = random_size(), peak = model_.peak_allocated();
    const bool nothing = model_.touch_is_nothing(size, peak);
    const std::optional<Bytes> touched = model_.touch(size);
    if (nothing) {
      REQUIRE(touched);
      REQUIRE(model_.allocated() + *touched <= peak);
      REQUIRE(model_.peak_allocated() == peak);
      ++nothings_;
    }
    if (!touched) {
      if (const auto block = model_.allocate(size)) model_.free(*block);
    }
    const std::int64_t before = reference_.allocated;
    const auto address = reference_.allocate(size.value, 0);
    if (!address) return;
    peak_allocated_ = std::max(peak_allocated_, reference_.allocated);
    if (touched) REQUIRE(touched->value == reference_.allocated - before);
    reference_.free(*address);
  }

  void free_one() {
    if (live_.empty()) return;
    const auto count = static_cast<std::int64_t>(live_.size());
    const auto index = random_.coin() ? count - 1 : random_.below(count);  // the latest or any
    std::swap(live_[static_cast<std::size_t>(index)], live_.back());
    const Live freed = live_.back();
    live_.pop_back();
    for (auto users = random_.below(8) - 5; users > 0; --users) {
      const StreamId user = random_.stream_below(4);
      model_.record_stream(freed.block, user);
      reference_.record_stream(freed.address, static_cast<int>(user));
    }
    model_.free(freed.block);
    reference_.free(freed.address);
  }

  // All the work of a stream, or what it had up to an earlier mark.
  void finish_stream() {
    const StreamId id = random_.stream_below(4);
    const auto stream = static_cast<int>(id);
    const StreamMark mark = model_.mark(id);
    const std::size_t waiting = reference_.waiting(stream);
    if (random_.coin()) free_one();
    if (random_.coin()) {
      model_.stream_done(id);
      reference_.stream_done(stream, reference_.waiting(stream));
    } else {
      model_.stream_done(id, mark);
      reference_.stream_done(stream, waiting);
    }
  }

  void compare() {
    REQUIRE(model_.allocated().value == reference_.allocated);
    REQUIRE(model_.active().value == reference_.active());
    REQUIRE(model_.reserved().value == reference_.reserved());
    REQUIRE(model_.alloc_retries() == reference_.retries);
    REQUIRE(model_.peak_allocated().value == peak_allocated_);
    REQUIRE(model_.peak_reserved() >= model_.active());
  }

  CachingAllocator model_;
  reference::Allocator reference_;
  Random random_;
  std::vector<Live> live_;
  std::int64_t peak_allocated_ = 0;
  int nothings_ = 0;
};

TEST_CASE("random sequences: the same state as the reference at every step") {
  int nothings = 0;
  for (const Setting& setting : settings_to_play()) {
    for (unsigned seed = 0; seed < 40; ++seed) {
      INFO(setting.name << ", seed " << seed);
      Pair pair(setting, seed);
      for (int step = 0; step < 300; ++step) {
        pair.step();
        if (step % 10 == 0) pair.check_invariants();
      }
      pair.finish();
      nothings += pair.nothings();
    }
  }
  CHECK(nothings > 0);
}

TEST_CASE("after reset() an allocator plays as a new one does") {
  for (const Setting& setting : settings_to_play()) {
    INFO(setting.name);
    CachingAllocator used(setting.settings, setting.capacity);
    CachingAllocator fresh(setting.settings, setting.capacity);
    Random random(7);
    for (int i = 0; i < 100; ++i) {
      const auto block = used.allocate(random.size_up_to(30_MiB));
      if (!block) continue;
      used.record_stream(*block, random.stream_below(3));
      if (random.coin()) used.free(*block);
    }
    used.reset();
    for (int i = 0; i < 100; ++i) {
      const Bytes size = random.size_up_to(30_MiB);
      const auto a = used.allocate(size);
      const auto b = fresh.allocate(size);
      REQUIRE(a.has_value() == b.has_value());
      if (a && random.coin()) {
        used.free(*a);
        fresh.free(*b);
      }
    }
    CHECK(used.snapshot() == fresh.snapshot());
    CHECK(used.counters() == fresh.counters());
    CHECK(used.peak_allocated() == fresh.peak_allocated());
    CHECK(used.peak_reserved() == fresh.peak_reserved());
  }
}

}  // namespace
}  // namespace shardwise
