// FreeBlockSet: the free blocks of one pool in the order (size, address), as the std::set in
// PyTorch's BlockPool keeps them [BlockComparatorSize], in flat memory.
//
// Blocks of nearly the same size share a bin: 16 bins for every doubling of the size, counted in
// units u of 512 B (all block sizes are multiples of it),
//
//   bin(u) = u                                             u < 16
//            16 (e - 3) + the four bits of u after its first,   e = floor(log2 u), at most 511
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
#include <vector>

#include "catalog/units.hpp"
#include "simulator/memory_block.hpp"

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
  // Valid until the set changes.
  struct Position {
    std::uint32_t bin = 0;
    std::uint32_t slot = 0;
  };

  FreeBlockSet() : bins_(bin_count) {}

  // The first entry of at least this size, the one with the lowest address among equals.
  Position best_fit(Bytes size) const {
    const std::size_t bin = bin_of(size);
    const std::size_t fitting = entries_from(bins_[bin], size, Bytes{});
    if (fitting > 0) return position(bin, fitting - 1);
    return first_of(next_occupied(bin + 1));
  }
  bool at_end(Position at) const { return at.bin == bin_count; }
  const FreeBlock& operator[](Position at) const { return bins_[at.bin][at.slot]; }
  // The entry that follows in the order. REQUIRES: not at_end(at).
  Position after(Position at) const {
    if (at.slot > 0) return position(at.bin, std::size_t{at.slot} - 1);
    return first_of(next_occupied(std::size_t{at.bin} + 1));
  }

  void insert(MemoryBlockId id, const MemoryBlock& block) {
    const std::size_t bin = bin_of(block.size);
    Bin& entries = bins_[bin];
    const std::size_t slot = entries_from(entries, block.size, block.address);
    entries.emplace_back();
    FreeBlock* const place = entries.data() + slot;
    std::move_backward(place, &entries.back(), &entries.back() + 1);
    place->size = block.size;  // field by field: a copy in one piece would wait for the parts
    place->address = block.address;
    place->block = id;
    occupied_[bin / 64] |= std::uint64_t{1} << bin % 64;
  }
  void erase(Position at) {
    Bin& entries = bins_[at.bin];
    if (std::size_t{at.slot} + 1 == entries.size()) {
      entries.pop_back();
    } else {
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at.slot));
    }
    if (entries.empty()) occupied_[at.bin / 64] &= ~(std::uint64_t{1} << at.bin % 64);
  }
  // REQUIRES: the block is in the set.
  void erase(const MemoryBlock& block) { erase(find(block)); }
  Position find(const MemoryBlock& block) const {
    const std::size_t bin = bin_of(block.size);
    return position(bin, entries_from(bins_[bin], block.size, block.address) - 1);
  }
  // The entry there becomes that of another block, mostly one that has shrunk or grown a little and
  // stays in its place.
  void replace(Position at, MemoryBlockId id, const MemoryBlock& block) {
    Bin& entries = bins_[at.bin];
    const std::size_t above = std::size_t{at.slot} - 1, below = std::size_t{at.slot} + 1;
    const bool stays =
        bin_of(block.size) == at.bin &&
        (at.slot == 0 || !entries[above].is_below(block.size, block.address)) &&
        (below == entries.size() || entries[below].is_below(block.size, block.address));
    if (stays) {
      entries[at.slot].size = block.size;
      entries[at.slot].address = block.address;
      entries[at.slot].block = id;
      return;
    }
    erase(at);
    insert(id, block);
  }

  std::vector<FreeBlock> entries() const;  // in order
  void clear();

 private:
  using Bin = std::vector<FreeBlock>;
  static constexpr std::size_t bin_count = 512;

  static std::size_t bin_of(Bytes size) {
    const std::uint64_t units = static_cast<std::uint64_t>(size.value) >> 9;
    if (units < 16) return units;
    const auto log2 = static_cast<std::size_t>(std::bit_width(units)) - 1;
    return std::min<std::size_t>(16 * (log2 - 3) + (units >> (log2 - 4) & 15), bin_count - 1);
  }
  // How many entries, from the front, are not below the key.
  static std::size_t entries_from(const Bin& bin, Bytes size, Bytes address) {
    if (bin.empty() || !bin.back().is_below(size, address)) return bin.size();
    const FreeBlock* first = bin.data();
    for (std::size_t length = bin.size(); length > 0;) {
      const std::size_t half = (length + 1) / 2;
      first += half * static_cast<std::size_t>(!first[half - 1].is_below(size, address));
      length -= half;
    }
    return static_cast<std::size_t>(first - bin.data());
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
  static Position position(std::size_t bin, std::size_t slot) {
    return {static_cast<std::uint32_t>(bin), static_cast<std::uint32_t>(slot)};
  }
  Position first_of(std::size_t bin) const {
    return position(bin, bin == bin_count ? 0 : bins_[bin].size() - 1);
  }

  std::vector<Bin> bins_;
  std::array<std::uint64_t, bin_count / 64> occupied_{};
};

}  // namespace shardwise
