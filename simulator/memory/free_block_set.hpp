// FreeBlockSet: the free blocks of one pool in the order (size, address), as the std::set in
// PyTorch's BlockPool keeps them [BlockComparatorSize], in flat memory.
//
// Blocks of nearly the same size share a bin: 16 bins for every doubling of the size, counted in
// units u of 512 B (all block sizes are multiples of it),
//
//   bin(u) = 16 s + floor(u / 2^(s - 4)) - 16,   s = floor(log2 u),   at most 511
//
// so a larger bin holds only larger blocks: s and the four bits behind the first, which are the
// leading bits of u as a double. Half of all blocks come into an empty bin, and four of five become
// the least of theirs: so that one lies in the bin itself, and the others, sorted downwards, in a
// list beside it. A bit per bin says whether it holds anything, and one per word of these whether
// any of them is set.
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
  std::uint32_t bin = 0;  // of its set, where it lies

  constexpr bool is_below(Bytes key_size, Bytes key_address) const {
    // Arithmetic, not short cuts: a search through free blocks has no branch worth predicting.
    const int smaller = static_cast<int>(size < key_size);
    const int equal = static_cast<int>(size == key_size);
    return (smaller | (equal & static_cast<int>(address < key_address))) != 0;
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
  Position best_fit(Bytes size) const {
    const std::uint32_t number = bin_of(size);
    const Bin& bin = bins_[number];
    if (bin.count > 0) {
      if (bin.least.size >= size) return &bin.least;
      const std::uint32_t fit = bin.not_below(size, {});
      if (fit > 0) return bin.others.get() + fit - 1;
    }
    return first_of(next_occupied(number + 1));
  }
  // The entry that follows in the order. REQUIRES one there.
  Position after(Position at) const {
    const std::uint32_t number = at->bin;
    const Bin& bin = bins_[number];
    const FreeBlock* const behind = at == &bin.least ? bin.others.get() + bin.count - 1 : at;
    if (behind != bin.others.get()) return behind - 1;
    return first_of(next_occupied(number + 1));
  }

  void insert(MemoryBlockId id, const MemoryBlock& block) {
    insert(bin_of(block.size), id, block.size, block.address);
  }
  void erase(Position at) { erase(at->bin, at); }
  // REQUIRES: the block is in the set.
  void erase(const MemoryBlock& block) {
    const std::uint32_t number = bin_of(block.size);
    const Bin& bin = bins_[number];
    const bool is_least = !bin.least.is_below(block.size, block.address);
    erase(number,
          is_least ? &bin.least : bin.others.get() + bin.not_below(block.size, block.address) - 1);
  }

  std::vector<FreeBlock> entries() const;  // in order
  void clear();

 private:
  struct Bin {
    FreeBlock least;                      // where there is one
    std::uint32_t count = 0;              // with the least one
    std::uint32_t capacity = 0;           // of `others`
    std::unique_ptr<FreeBlock[]> others;  // in the first count - 1 places

    // How many of the others, from the front, are not below the key. REQUIRES a least one.
    std::uint32_t not_below(Bytes size, Bytes address) const {
      const FreeBlock* const begin = others.get();
      const FreeBlock* first = begin;
      for (std::uint32_t length = count - 1; length > 0;) {
        const std::uint32_t half = (length + 1) / 2;
        first = first[half - 1].is_below(size, address) ? first : first + half;
        length -= half;
      }
      return static_cast<std::uint32_t>(first - begin);
    }
    // A place among the others at `slot`.
    FreeBlock& make_place(std::uint32_t slot) {
      if (count > capacity) grow();
      FreeBlock* const place = others.get() + slot;
      std::move_backward(place, others.get() + count - 1, others.get() + count);
      return *place;
    }
    void grow();
  };
  static constexpr std::uint32_t bin_count = 512;

  // REQUIRES: one unit or more.
  static std::uint32_t bin_of(Bytes size) {
    const auto units = static_cast<double>(size.value >> 9);
    constexpr std::uint64_t of_one = std::bit_cast<std::uint64_t>(1.0) >> 48;
    const auto number =
        static_cast<std::uint32_t>((std::bit_cast<std::uint64_t>(units) >> 48) - of_one);
    return number < bin_count ? number : bin_count - 1;
  }
  void insert(std::uint32_t number, MemoryBlockId id, Bytes size, Bytes address) {
    Bin& bin = bins_[number];
    FreeBlock* place = &bin.least;
    if (bin.count == 0) {
      occupied_[number / 64] |= std::uint64_t{1} << number % 64;
      occupied_words_ |= 1U << number / 64;
    } else if (bin.least.is_below(size, address)) {
      place = &bin.make_place(bin.not_below(size, address));
    } else {
      bin.make_place(bin.count - 1).set(bin.least.size, bin.least.address, bin.least.block, number);
    }
    place->set(size, address, id, number);
    ++bin.count;
  }
  void erase(std::uint32_t number, Position at) {
    Bin& bin = bins_[number];
    --bin.count;
    FreeBlock* const end = bin.others.get() + bin.count;  // behind the others that stay, and one
    if (at != &bin.least) {
      FreeBlock* const place = bin.others.get() + (at - bin.others.get());
      std::move(place + 1, end, place);
    } else if (bin.count > 0) {
      bin.least.set(end[-1].size, end[-1].address, end[-1].block, number);
    } else {
      occupied_[number / 64] &= ~(std::uint64_t{1} << number % 64);
      if (occupied_[number / 64] == 0) occupied_words_ &= ~(1U << number / 64);
    }
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
