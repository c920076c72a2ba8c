// FreeBlockSet: the free blocks of one pool in the order (size, address), as the std::set in
// PyTorch's BlockPool keeps them [BlockComparatorSize], in flat memory.
//
// Blocks of nearly the same size share a bin: 16 bins for every doubling of the size, counted in
// units u of 512 B (all block sizes are multiples of it),
//
//   bin(u) = 16 s + floor(u / 2^(s - 4)) - 16,   s = floor(log2 u),   at most 511
//
// so a larger bin holds only larger blocks: s and the four bits behind the first. A block remembers
// the bin that it lies in. Half of all blocks come into an empty bin, and four of five become the
// least of theirs: so that one lies in the bin itself, and the others, sorted downwards, in a list
// beside it that has room at both ends, as blocks that come and go in the order of their addresses
// do so at an end. A bit per bin says whether it holds anything, and one per word of these whether
// any of them is set.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/memory/memory_block.hpp"

namespace shardwise {

struct FreeBlock {
  Bytes size;
  Bytes address;
  MemoryBlockId block;
  std::uint32_t bin = 0;  // of its set, where it lies

  constexpr bool is_below(Bytes key_size, Bytes key_address) const {
    // Arithmetic, not short cuts: a search through free blocks has no branch worth predicting.
    return order(size, address) < order(key_size, key_address);
  }
  constexpr bool is(Bytes key_size, Bytes key_address) const {
    return order(size, address) == order(key_size, key_address);
  }
  // Both in one number, which is compared with a borrow.
  __extension__ using Order = unsigned __int128;
  static constexpr Order order(Bytes size, Bytes address) {
    return Order{static_cast<std::uint64_t>(size.value)} << 64 |
           static_cast<std::uint64_t>(address.value);
  }
  // Field by field: a copy in one piece would wait for the parts that were written last.
  constexpr void set(Bytes its_size, Bytes its_address, MemoryBlockId its_block,
                     std::uint32_t its_bin) {
    size = its_size;
    address = its_address;
    block = its_block;
    bin = its_bin;
  }
};

class FreeBlockSet {
 public:
  // An entry, or nullptr behind the last one. Valid until the set changes.
  using Position = const FreeBlock*;

  FreeBlockSet() : bins_(bin_count) {}

  // The first entry of at least this size, the one with the lowest address among equals.
  [[gnu::always_inline]] Position best_fit(Bytes size) const {
    const std::uint32_t number = bin_of(size);
    const Bin& bin = bins_[number];
    if (bin.count > 0) {
      if (bin.least.size >= size) [[likely]]
        return &bin.least;
      if (const FreeBlock* const fit = bin.fit_among_others(size)) return fit;
    }
    return first_of(next_occupied(number + 1));
  }
  // Whether an entry lies in a bin above that of this size, and so is larger.
  [[gnu::always_inline]] bool has_in_higher_bin(Bytes size) const {
    const std::uint32_t number = bin_of(size), word = number / 64;
    return occupied_words_ >> word > 1 || occupied_[word] >> number % 64 > 1;
  }
  // The entry that follows in the order. REQUIRES one there.
  Position after(Position at) const {
    const std::uint32_t number = at->bin;
    const Bin& bin = bins_[number];
    const FreeBlock* const behind = at == &bin.least ? bin.others + bin.count - 1 : at;
    if (behind != bin.others) return behind - 1;
    return first_of(next_occupied(number + 1));
  }

  [[gnu::always_inline]] void insert(MemoryBlockId id, MemoryBlock& block) {
    const std::uint32_t number = bin_of(block.size);
    Bin& bin = bins_[number];
    block.bin = static_cast<std::uint16_t>(number);
    if (bin.count > 0) return bin.add(block.size, block.address, id, number);
    bin.count = 1;
    bin.least.set(block.size, block.address, id, number);
    occupied_[number / 64] |= std::uint64_t{1} << number % 64;
    occupied_words_ |= 1U << number / 64;
  }
  // REQUIRES: the block is in the set.
  [[gnu::always_inline]] void erase(const MemoryBlock& block) {
    Bin& bin = bins_[block.bin];
    if (bin.count > 1) return bin.remove(block.size, block.address);
    vacate(bin, block.bin);
  }
  [[gnu::always_inline]] void erase(Position at) {
    Bin& bin = bins_[at->bin];
    if (bin.count > 1) return bin.remove(at->size, at->address);
    vacate(bin, at->bin);
  }

  std::vector<FreeBlock> entries() const;  // in order
  // Calls visit(entry) for every entry, bin by bin, in an order of its own within each.
  template <class Visit>
  void each(Visit visit) const {
    for (std::uint32_t at = next_occupied(0); at != bin_count; at = next_occupied(at + 1)) {
      const Bin& bin = bins_[at];
      visit(bin.least);
      for (std::uint32_t i = 0; i + 1 < bin.count; ++i) visit(bin.others[i]);
    }
  }
  void clear();

 private:
  struct Bin {
    FreeBlock least;                      // where there is one
    std::uint32_t count = 0;              // with the least one
    std::uint32_t capacity = 0;           // of `places`
    FreeBlock* others = nullptr;          // the first of count - 1 in a row
    std::unique_ptr<FreeBlock[]> places;  // where the others lie, with room before and behind them

    // How many of the others, from the front, are not below the key.
    std::uint32_t not_below(Bytes size, Bytes address) const {
      return not_below_among(count - 1, size, address);
    }
    std::uint32_t not_below_among(std::uint32_t length, Bytes size, Bytes address) const {
      const FreeBlock* first = others;
      while (length > 0) {
        const std::uint32_t half = (length + 1) / 2;
        first = first[half - 1].is_below(size, address) ? first : first + half;
        length -= half;
      }
      return static_cast<std::uint32_t>(first - others);
    }
    // The last that is large enough, if any: it often is the last of all.
    const FreeBlock* fit_among_others(Bytes size) const {
      if (count == 1 || others[0].size < size) return nullptr;
      if (others[count - 2].size >= size) return &others[count - 2];
      return others + not_below(size, {}) - 1;
    }
    // A place among the others: before the first, behind the last, or at `slot`.
    FreeBlock& place_in_front() {
      if (others == places.get()) grow();
      return *--others;
    }
    FreeBlock& place_behind() {
      if (others - places.get() + std::ptrdiff_t{count} > std::ptrdiff_t{capacity}) grow();
      return others[count - 1];
    }
    FreeBlock& make_place(std::uint32_t slot) {
      const std::uint32_t behind = count - 1 - slot;
      if (slot < behind) {  // the fewer ones move
        place_in_front();
        std::move(others + 1, others + 1 + slot, others);
      } else {
        place_behind();
        std::move_backward(others + slot, others + slot + behind, others + count);
      }
      return others[slot];
    }
    // The ends are looked at first: three in five of the blocks that are not the least stand there.
    FreeBlock& place_for(Bytes size, Bytes address) {
      if (count == 1 || !others[count - 2].is_below(size, address)) return place_behind();
      if (others[0].is_below(size, address)) return place_in_front();
      return make_place(not_below(size, address));
    }
    // REQUIRES a least one.
    void add(Bytes size, Bytes address, MemoryBlockId id, std::uint32_t number) {
      if (least.is_below(size, address)) {
        place_for(size, address).set(size, address, id, number);
      } else {
        place_behind().set(least.size, least.address, least.block, number);
        least.set(size, address, id, number);
      }
      ++count;
    }
    // REQUIRES two or more, and that this is one of them.
    void remove(Bytes size, Bytes address) {
      --count;
      const FreeBlock& last = others[count - 1];
      if (least.is(size, address)) return least.set(last.size, last.address, last.block, last.bin);
      if (last.is(size, address)) return;
      if (others->is(size, address)) {
        ++others;
        return;
      }
      const std::uint32_t slot = not_below_among(count, size, address) - 1;
      if (slot < count - 1 - slot) {
        std::move_backward(others, others + slot, others + slot + 1);
        ++others;
      } else {
        std::move(others + slot + 1, others + count, others + slot);
      }
    }
    void grow();
  };
  static constexpr std::uint32_t bin_count = 512;

  // REQUIRES: one unit or more.
  static std::uint32_t bin_of(Bytes size) {
    const auto bytes = static_cast<std::uint64_t>(size.value);
    // The first bit, as one instruction gives it: std::bit_width asks whether there is any.
    const auto first = 63U ^ static_cast<std::uint32_t>(__builtin_clzll(bytes));
    const std::uint32_t number =
        16 * first + static_cast<std::uint32_t>(bytes >> (first - 4)) - 160;
    return number < bin_count ? number : bin_count - 1;
  }
  [[gnu::always_inline]] void vacate(Bin& bin, std::uint32_t number) {
    bin.count = 0;
    std::uint64_t& word = occupied_[number / 64];
    word &= ~(std::uint64_t{1} << number % 64);
    if (word == 0) occupied_words_ &= ~(1U << number / 64);
  }
  std::uint32_t next_occupied(std::uint32_t bin) const {
    if (bin == bin_count) return bin_count;
    std::uint32_t word = bin / 64;
    std::uint64_t bits = occupied_[word] & ~std::uint64_t{0} << bin % 64;
    if (bits == 0) {
      const std::uint32_t words = occupied_words_ & ~1U << word;
      if (words == 0) return bin_count;
      word = static_cast<unsigned>(std::countr_zero(words));
      bits = occupied_[word];
    }
    return 64 * word + static_cast<unsigned>(std::countr_zero(bits));
  }
  Position first_of(std::uint32_t number) const {
    return number == bin_count ? nullptr : &bins_[number].least;
  }

  std::vector<Bin> bins_;
  std::array<std::uint64_t, bin_count / 64> occupied_{};
  std::uint32_t occupied_words_ = 0;
};

}  // namespace shardwise
