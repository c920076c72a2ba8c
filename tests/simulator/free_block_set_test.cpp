// FreeBlockSet against std::set in the order (size, address).
#include "simulator/memory/free_block_set.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "tests/catch.hpp"

namespace shardwise {
namespace {

using Key = std::tuple<std::int64_t, std::int64_t>;  // size, address

Key key(const FreeBlock& entry) { return {entry.size.value, entry.address.value}; }

MemoryBlock block_at(std::int64_t size, std::int64_t address) {
  MemoryBlock made;
  made.size = Bytes(size);
  made.address = Bytes(address);
  return made;
}

// Both sets, and that they agree on a question.
struct SetPair {
  FreeBlockSet flat;
  std::set<Key> ordered;
  std::map<Key, MemoryBlock> blocks;  // which remember their bins

  void insert(std::int64_t size, std::int64_t address) {
    if (!ordered.insert({size, address}).second) return;
    MemoryBlock& block = blocks[{size, address}] = block_at(size, address);
    flat.insert({static_cast<std::uint32_t>(address / 512)}, block);
  }
  void erase(std::int64_t size, std::int64_t address) {
    if (ordered.erase({size, address}) > 0) flat.erase(blocks.at({size, address}));
  }
  // The bins above that of a size begin where its first five bits end; the last one, which begins
  // at 31/16 of 2^40, has none above it.
  void check_higher_bin(std::int64_t size) const {
    const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size))) - 5;
    const std::int64_t above = ((size >> shift) + 1) << shift;
    const bool last = size >= std::int64_t{31} << 36;
    REQUIRE(flat.has_in_higher_bin(Bytes(size)) ==
            (!last && ordered.lower_bound({above, 0}) != ordered.end()));
  }
  void check_best_fit(std::int64_t size) const {
    check_higher_bin(size);
    auto expected = ordered.lower_bound({size, 0});
    auto at = flat.best_fit(Bytes(size));
    for (int i = 0; i < 3; ++i) {  // and the two that follow
      REQUIRE((at == nullptr) == (expected == ordered.end()));
      if (at == nullptr) return;
      REQUIRE(key(*at) == *expected);
      REQUIRE(at->block.index == std::get<1>(*expected) / 512);
      at = flat.after(at);
      ++expected;
    }
  }
  void check_entries() const {
    std::vector<Key> keys;
    for (const FreeBlock& entry : flat.entries()) keys.push_back(key(entry));
    REQUIRE(keys == std::vector<Key>(ordered.begin(), ordered.end()));
    std::vector<Key> visited;
    flat.each([&](const FreeBlock& entry) { visited.push_back(key(entry)); });
    std::sort(visited.begin(), visited.end());
    REQUIRE(visited == keys);
  }
};

TEST_CASE("every size from 512 B to 1 PiB finds itself and not a smaller one") {
  // Around each power of two and each sixteenth between them, where the bins begin.
  SetPair sets;
  std::vector<std::int64_t> sizes;
  for (std::int64_t power = 512; power <= std::int64_t{1} << 50; power *= 2) {
    for (std::int64_t part = 16; part < 32; ++part) {
      for (const std::int64_t around : {-512, 0, 512}) {
        sizes.push_back(std::max<std::int64_t>(512, power / 16 * part / 512 * 512 + around));
      }
    }
  }
  for (const std::int64_t size : sizes) sets.insert(size, 512 * (size % 7));
  sets.check_entries();
  for (const std::int64_t size : sizes) {
    sets.check_best_fit(size);
    sets.check_best_fit(size + 512);
  }
  sets.flat.clear();
  sets.ordered.clear();
  sets.check_best_fit(512);
  sets.check_entries();
}

// 1 MiB shares a bin with all below 17/16 of it, 1,088 KiB. 124 KiB lies in bin 127, the last of
// its word of bits, and 128 KiB in bin 128.
TEST_CASE("what lies in the same bin is not in a higher one") {
  SetPair sets;
  sets.insert(1024 * 1088 - 512, 0);
  CHECK_FALSE(sets.flat.has_in_higher_bin(Bytes(1024 * 1024)));
  CHECK(sets.flat.has_in_higher_bin(Bytes(1024 * 1024 - 512)));
  sets.insert(1024 * 1088, 0);
  CHECK(sets.flat.has_in_higher_bin(Bytes(1024 * 1024)));
  CHECK_FALSE(sets.flat.has_in_higher_bin(Bytes(1024 * 1088)));
  SetPair small;
  small.insert(124 * 1024, 0);
  CHECK_FALSE(small.flat.has_in_higher_bin(Bytes(124 * 1024)));
  small.insert(128 * 1024, 0);
  CHECK(small.flat.has_in_higher_bin(Bytes(124 * 1024)));
}

TEST_CASE("random insertions and erasures keep the order") {
  std::mt19937 engine(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(engine()) % n; };
  for (const std::int64_t sizes : {3, 40, 5000}) {  // many equal sizes, some, hardly any
    SetPair sets;
    for (int step = 0; step < 5000; ++step) {
      const std::int64_t size = 512 * (1 + below(sizes) * below(sizes));
      if (below(5) < 3) {
        sets.insert(size, 512 * below(4000));
      } else {
        const auto near = sets.ordered.lower_bound({size, 512 * below(4000)});
        if (near != sets.ordered.end()) sets.erase(std::get<0>(*near), std::get<1>(*near));
      }
      sets.check_best_fit(512 * (1 + below(sizes) * below(sizes)));
      if (step % 100 == 0) sets.check_entries();
    }
  }
}

}  // namespace
}  // namespace shardwise
