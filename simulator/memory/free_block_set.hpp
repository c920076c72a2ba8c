// FreeBlockSet: the free blocks of one pool in the order (size, address), as the std::set in
// PyTorch's BlockPool keeps them [BlockComparatorSize], in flat memory.
//
// Blocks of nearly the same size share a bin: 16 bins for every doubling of the size, counted in
// units u of 512 B (all block sizes are multiples of it),
//
//   bin(u) = 16 s + floor(u / 2^s),   s = max(0, floor(log2 u) - 4),   at most 511
//
// so a larger bin holds only larger blocks. A bin is sorted downwards: what best fit takes and what
// a stack of allocations gives back is mostly its last entry. A bit per bin says whether it holds
// anything, so the next larger block is found by a scan of eight words.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/memory/memory_block.hpp"

namespace shardwise {

struct FreeBlock {
  Bytes size;
  Bytes address;
  MemoryBlockId block;

  constexpr bool is_below(Bytes key_size, Bytes key_address) const {
    // Arithmetic, not short cuts: a search through free blocks has no branch worth predicting.
    const int smaller = static_cast<int>(size < key_size);
    const int equal = static_cast<int>(size == key_size);
    return (smaller | (equal & static_cast<int>(address < key_address))) != 0;
  }
};

class FreeBlockSet {
 public:
  // An entry, or nullptr behind the last one. Valid until the set changes.
  using Position = const FreeBlock*;

  FreeBlockSet() : bins_(bin_count) {}

  // The first entry of at least this size, the one with the lowest address among equals.
  Position best_fit(Bytes size) const {
    const std::size_t number = bin_of(size);
    const Bin& bin = bins_[number];
    if (bin.size > 0) {
      const FreeBlock* const least = bin.entries.get() + bin.size - 1;
      if (least->size >= size) return least;
      if (bin.entries[0].size >= size) return bin.entries.get() + bin.not_below(size, {}) - 1;
    }
    return first_of(next_occupied(number + 1));
  }
  // The entry that follows in the order. REQUIRES one there.
  Position after(Position at) const {
    const std::size_t number = bin_of(at->size);
    if (at != bins_[number].entries.get()) return at - 1;
    return first_of(next_occupied(number + 1));
  }

  void insert(MemoryBlockId id, const MemoryBlock& block) {
    insert(bin_of(block.size), id, block.size, block.address);
  }
  void erase(Position at) { erase(bin_of(at->size), at); }
  // REQUIRES: the block is in the set.
  void erase(const MemoryBlock& block) { erase(find(block)); }
  Position find(const MemoryBlock& block) const {
    const Bin& bin = bins_[bin_of(block.size)];
    return bin.entries.get() + bin.not_below(block.size, block.address) - 1;
  }
  // The entry there becomes that of another block, mostly one that has shrunk or grown a little and
  // stays in its place.
  void replace(Position at, MemoryBlockId id, const MemoryBlock& block) {
    const std::size_t number = bin_of(at->size), next = bin_of(block.size);
    Bin& bin = bins_[number];
    FreeBlock* const entry = bin.entries.get() + (at - bin.entries.get());
    const auto slot = static_cast<std::uint32_t>(entry - bin.entries.get());
    const bool stays = number == next &&
                       (slot == 0 || !entry[-1].is_below(block.size, block.address)) &&
                       (slot + 1 == bin.size || entry[1].is_below(block.size, block.address));
    if (stays) {
      entry->size = block.size;
      entry->address = block.address;
      entry->block = id;
      return;
    }
    erase(number, at);
    insert(next, id, block.size, block.address);
  }

  std::vector<FreeBlock> entries() const;  // in order
  void clear();

 private:
  // Its entries lie in the first `size` places.
  struct Bin {
    std::unique_ptr<FreeBlock[]> entries;
    std::uint32_t size = 0, capacity = 0;

    // How many entries, from the front, are not below the key.
    std::uint32_t not_below(Bytes key_size, Bytes key_address) const {
      const FreeBlock* const begin = entries.get();
      if (size == 0 || !begin[size - 1].is_below(key_size, key_address)) return size;
      const FreeBlock* first = begin;
      for (std::uint32_t length = size; length > 0;) {
        const std::uint32_t half = (length + 1) / 2;
        first +=
            half * static_cast<std::uint32_t>(!first[half - 1].is_below(key_size, key_address));
        length -= half;
      }
      return static_cast<std::uint32_t>(first - begin);
    }
    void grow();
  };
  static constexpr std::size_t bin_count = 512;

  static std::size_t bin_of(Bytes size) {
    const std::uint64_t units = static_cast<std::uint64_t>(size.value) >> 9;
    const auto shift = static_cast<std::size_t>(std::bit_width(units | 16)) - 5;
    const std::size_t number = 16 * shift + (units >> shift);
    return number < bin_count ? number : bin_count - 1;
  }
  void insert(std::size_t number, MemoryBlockId id, Bytes size, Bytes address) {
    Bin& bin = bins_[number];
    if (bin.size == bin.capacity) bin.grow();
    const std::uint32_t slot = bin.not_below(size, address);
    FreeBlock* const place = bin.entries.get() + slot;
    if (slot < bin.size)
      std::move_backward(place, place + (bin.size - slot), place + (bin.size - slot + 1));
    place->size = size;  // field by field: a copy in one piece would wait for the parts
    place->address = address;
    place->block = id;
    ++bin.size;
    occupied_[number / 64] |= std::uint64_t{1} << number % 64;
  }
  void erase(std::size_t number, Position at) {
    Bin& bin = bins_[number];
    const auto slot = static_cast<std::uint32_t>(at - bin.entries.get());
    FreeBlock* const place = bin.entries.get() + slot;
    --bin.size;
    if (slot < bin.size) std::move(place + 1, place + 1 + (bin.size - slot), place);
    if (bin.size == 0) occupied_[number / 64] &= ~(std::uint64_t{1} << number % 64);
  }
  std::size_t next_occupied(std::size_t bin) const {
    for (std::size_t word = bin / 64; word < occupied_.size(); ++word) {
      const std::uint64_t mask =
          word == bin / 64 ? ~std::uint64_t{0} << bin % 64 : ~std::uint64_t{0};
      const std::uint64_t bits = occupied_[word] & mask;
      if (bits != 0) return 64 * word + static_cast<unsigned>(std::countr_zero(bits));
    }
    return bin_count;
  }
  Position first_of(std::size_t number) const {
    if (number == bin_count) return nullptr;
    const Bin& bin = bins_[number];
    return bin.entries.get() + bin.size - 1;
  }

  std::vector<Bin> bins_;
  std::array<std::uint64_t, bin_count / 64> occupied_{};
};

}  // namespace shardwise
