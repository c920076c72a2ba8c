// A second model of PyTorch's caching allocator, to hold against CachingAllocator: slow, and with
// as little state as possible. It keeps only which address ranges are in use and which are backed
// by memory; free blocks are the gaps between them, computed anew for every question. That is the
// same thing: a freed block always merges with its free neighbours, so no two of them touch.
//
// The rules are those in the header of caching_allocator.hpp, written down a second time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/memory/allocator_settings.hpp"
#include "simulator/memory/memory_snapshot.hpp"

namespace shardwise::reference {

using Int = std::int64_t;
inline constexpr Int kib = 1024;
inline constexpr Int mib = 1024 * kib;

class Allocator {
 public:
  Allocator(const AllocatorSettings& settings, std::optional<Bytes> capacity)
      : settings_(settings), capacity_(capacity) {}

  // The address of the block, or nothing when out of memory.
  std::optional<Int> allocate(Int request, int stream) {
    const Int size = rounded(request);
    const Pool pool{stream, size <= mib};
    if (!pool.small) ++searches_;
    std::optional<Gap> gap = cached(pool, size);
    if (!gap) gap = fresh(pool, size);
    if (!gap) return std::nullopt;
    const Int rest = gap->size - size;
    const bool split = pool.small || settings_.expandable_segments
                           ? rest >= 512
                           : size < max_split() && rest > mib;
    const Int taken = split ? size : gap->size;
    used_[gap->address] = {taken, pool, {}, false};
    allocated += taken;
    return gap->address;
  }

  void record_stream(Int address, int user) {
    if (user != used_.at(address).pool.stream) used_.at(address).users.insert(user);
  }

  void free(Int address) {
    Use& use = used_.at(address);
    allocated -= use.size;
    if (use.users.empty()) return settle(address);
    use.pending = true;
    for (const int user : use.users) waiting_[user].push_back(address);
  }

  // The oldest `frees` of those that wait for the stream.
  void stream_done(int stream, std::size_t frees) {
    std::vector<Int>& queue = waiting_[stream];
    frees = std::min(frees, queue.size());
    for (std::size_t i = 0; i < frees; ++i) {
      used_.at(queue[i]).users.erase(stream);
      if (used_.at(queue[i]).users.empty()) settle(queue[i]);
    }
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(frees));
  }
  std::size_t waiting(int stream) { return waiting_[stream].size(); }

  void empty_cache() {
    for (auto& [stream, queue] : waiting_) stream_done(stream, queue.size());
    for (auto range = ranges_.begin(); range != ranges_.end();) {
      range = release_unused_pages(*range) ? ranges_.erase(range) : std::next(range);
    }
  }

  Int reserved() const {
    Int sum = 0;
    for (const auto& [address, range] : ranges_) {
      sum += static_cast<Int>(range.pages.size()) * range.page;
    }
    return sum;
  }
  Int active() const {
    Int sum = 0;
    for (const auto& [address, use] : used_) sum += use.size;
    return sum;
  }
  std::vector<SegmentView> snapshot() const;

  Int allocated = 0;
  Int retries = 0;

 private:
  struct Pool {
    int stream = 0;
    bool small = false;
    friend bool operator==(const Pool&, const Pool&) = default;
  };
  struct Use {
    Int size = 0;
    Pool pool;
    std::set<int> users;
    bool pending = false;
  };
  // A range of addresses, of which `pages` (by address) are backed by memory. What cudaMalloc gives
  // is a range of one page of its own size.
  struct Range {
    Int size = 0;
    Int page = 0;
    Pool pool;
    std::set<Int> pages;
    Int idle_since = 0;
  };
  using RangeEntry = std::pair<const Int, Range>;
  struct Gap {
    Int size = 0;
    Int address = 0;
    Int growth = 0;  // bytes without memory that follow directly
    friend bool operator<(const Gap& a, const Gap& b) {
      return std::tie(a.size, a.address) < std::tie(b.size, b.address);
    }
  };

  Int max_split() const { return settings_.max_split_size.value_or(Bytes(INT64_MAX)).value; }

  Int rounded(Int request) const {
    Int interval = 0;
    while (interval < 15 && request >= (Int{2} << interval) * mib) ++interval;
    const Int n = settings_.roundup_power2_divisions[static_cast<std::size_t>(interval)];
    if (n < 2 || request <= 512 * n) return std::max<Int>(1, (request + 511) / 512) * 512;
    Int power = 1;
    while (2 * power <= request) power *= 2;
    Int size = power;
    while (size < request) size += power / n;
    return size;
  }

  static Int segment_bytes(Int size) {
    if (size <= mib) return 2 * mib;
    if (size < 10 * mib) return 20 * mib;
    return (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
  }

  bool in_use(Int begin, Int end) const {  // any byte of it
    const auto next = used_.lower_bound(begin);
    if (next != used_.end() && next->first < end) return true;
    return next != used_.begin() && std::prev(next)->first + std::prev(next)->second.size > begin;
  }
  bool unused(const RangeEntry& range) const {
    return !in_use(range.first, range.first + range.second.size);
  }

  // Pieces of the range between blocks in use, cut where memory begins or ends.
  struct Piece {
    Int begin = 0;
    Int end = 0;
    bool backed = false;
  };
  std::vector<Piece> pieces(const RangeEntry& entry) const {
    const auto& [start, range] = entry;
    std::set<Int> cuts{start, start + range.size};
    for (const Int page : range.pages) cuts.insert({page, page + range.page});
    for (auto use = used_.lower_bound(start); use != used_.end(); ++use) {
      if (use->first >= start + range.size) break;
      cuts.insert({use->first, use->first + use->second.size});
    }
    std::vector<Piece> all;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      const Piece piece{*cut, *std::next(cut), backed(range, *cut)};
      if (in_use(piece.begin, piece.end)) continue;
      const bool joins =
          !all.empty() && all.back().end == piece.begin && all.back().backed == piece.backed;
      if (joins) {
        all.back().end = piece.end;
      } else {
        all.push_back(piece);
      }
    }
    return all;
  }
  static bool backed(const Range& range, Int address) {
    const auto after = range.pages.upper_bound(address);
    return after != range.pages.begin() && *std::prev(after) + range.page > address;
  }

  std::set<Gap> gaps(const Pool& pool) const {
    std::set<Gap> all;
    for (const RangeEntry& range : ranges_) {
      if (!(range.second.pool == pool)) continue;
      const std::vector<Piece> list = pieces(range);
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!list[i].backed) continue;
        const bool grows = i + 1 < list.size() && list[i + 1].begin == list[i].end;
        const Int growth = grows ? list[i + 1].end - list[i + 1].begin : 0;
        all.insert({list[i].end - list[i].begin, list[i].begin, growth});
      }
    }
    return all;
  }

  std::optional<Gap> cached(const Pool& pool, Int size) const {
    const std::set<Gap> all = gaps(pool);
    auto best = all.lower_bound({size, 0, 0});
    if (best == all.end()) return std::nullopt;
    for (auto next = std::next(best); next != all.end(); ++next) {
      if (next->size + next->growth >= best->size + best->growth) break;
      best = next;
    }
    if (size < max_split() && best->size >= max_split()) return std::nullopt;
    const Int tolerated = settings_.max_non_split_rounding.value;
    if (size >= max_split() && best->size >= size + tolerated) return std::nullopt;
    return *best;
  }

  std::optional<Gap> fresh(const Pool& pool, Int size) {
    collect_garbage();
    if (const auto gap = from_device(pool, size)) return gap;
    if (release_oversize(pool, size)) {
      if (const auto gap = from_device(pool, size)) return gap;
    }
    empty_cache();
    ++retries;
    return from_device(pool, size);
  }

  std::optional<Gap> from_device(const Pool& pool, Int size) {
    const Int segment = segment_bytes(size);
    if (settings_.process_limit && reserved() + segment > settings_.process_limit->value) return {};
    if (settings_.expandable_segments) return expanded(pool, size);
    if (capacity_ && reserved() + segment > capacity_->value) return {};
    const Int address = new_range({segment, segment, pool, {}, 0});
    ranges_.at(address).pages.insert(address);
    return Gap{segment, address, 0};
  }

  Int new_range(const Range& range) {
    const Int address = next_address_;
    next_address_ = (address + range.size + 20 * mib - 1) / (20 * mib) * (20 * mib);
    ranges_[address] = range;
    return address;
  }

  // The lowest gap-and-unbacked stretch that is long enough and not wholly backed.
  std::optional<Gap> expanded(const Pool& pool, Int size) {
    for (RangeEntry& range : ranges_) {
      if (!(range.second.pool == pool)) continue;
      const std::vector<Piece> list = pieces(range);
      for (std::size_t i = 0, j = 0; i < list.size(); i = j) {
        bool all_backed = list[i].backed;
        for (j = i + 1; j < list.size() && list[j].begin == list[j - 1].end; ++j) {
          all_backed = false;  // touching pieces differ in backing
        }
        if (!all_backed && list[j - 1].end - list[i].begin >= size) {
          return backed_stretch(range, list[i].begin, size);
        }
      }
    }
    const Int page = pool.small ? 2 * mib : 20 * mib;
    const Int wanted = capacity_ ? capacity_->value / 8 * 9 : Int{9} << 41;
    const Int space = (std::max(wanted, size) + page - 1) / page * page;
    const Int address = new_range({space, page, pool, {}, 0});
    return backed_stretch(*ranges_.find(address), address, size);
  }

  // Backs [begin, begin + size), one unbacked piece after the other, each wholly or not at all.
  std::optional<Gap> backed_stretch(RangeEntry& entry, Int begin, Int size) {
    auto& [start, range] = entry;
    for (const Piece& piece : pieces(entry)) {
      if (piece.backed || piece.end <= begin || piece.begin >= begin + size) continue;
      const Int bytes = std::min(piece.end, begin + size) - piece.begin;
      const Int count = (bytes + range.page - 1) / range.page;
      if (capacity_ && reserved() + count * range.page > capacity_->value) return std::nullopt;
      for (Int i = 0; i < count; ++i) range.pages.insert(piece.begin + i * range.page);
    }
    for (const Piece& piece : pieces(entry)) {
      if (piece.begin == begin) return Gap{piece.end - piece.begin, begin, 0};
    }
    return std::nullopt;
  }

  void settle(Int address) {
    used_.erase(address);
    std::prev(ranges_.upper_bound(address))->second.idle_since = searches_;
  }

  // Whether they were the last: a range that never had any stays.
  bool release_unused_pages(RangeEntry& entry) {
    std::set<Int> kept;
    for (const Int page : entry.second.pages) {
      if (in_use(page, page + entry.second.page)) kept.insert(page);
    }
    std::swap(entry.second.pages, kept);
    return entry.second.pages.empty() && !kept.empty();
  }

  void collect_garbage() {
    if (!settings_.process_limit || !settings_.garbage_collection_threshold) return;
    if (settings_.expandable_segments) return;
    const double threshold = *settings_.garbage_collection_threshold *
                             static_cast<double>(settings_.process_limit->value);
    while (reserved() > static_cast<Int>(threshold)) {
      std::vector<Int> idle;
      double ages = 0;
      for (const RangeEntry& range : ranges_) {
        if (range.second.pool.small || !unused(range)) continue;
        idle.push_back(range.first);
        ages += static_cast<double>(searches_ - range.second.idle_since);
      }
      if (idle.empty()) return;
      const double average = ages / static_cast<double>(idle.size());
      for (const Int address : idle) {
        const double age = static_cast<double>(searches_ - ranges_.at(address).idle_since);
        if (age >= average) ranges_.erase(address);
      }
    }
  }

  bool release_oversize(const Pool& pool, Int size) {
    if (!settings_.max_split_size || settings_.expandable_segments) return false;
    const Int wanted = std::max(size, max_split());
    std::set<Gap> all = gaps(pool);
    if (const auto fit = all.lower_bound({wanted, 0, 0}); fit != all.end()) {
      ranges_.erase(fit->address);
      return true;
    }
    Int released = 0;
    while (released < wanted && !all.empty() && std::prev(all.end())->size >= max_split()) {
      const Gap largest = *std::prev(all.end());
      all.erase(largest);
      released += largest.size;
      ranges_.erase(largest.address);
    }
    return released >= wanted;
  }

  AllocatorSettings settings_;
  std::optional<Bytes> capacity_;
  std::map<Int, Use> used_;
  std::map<Int, Range> ranges_;
  std::map<int, std::vector<Int>> waiting_;
  Int next_address_ = 20 * mib;
  Int searches_ = 0;
};

inline std::vector<SegmentView> Allocator::snapshot() const {
  std::vector<SegmentView> all;
  for (const RangeEntry& entry : ranges_) {
    const auto& [start, range] = entry;
    std::map<Int, BlockView> blocks;
    for (const Piece& piece : pieces(entry)) {
      if (piece.backed) blocks[piece.begin] = {Bytes(piece.end - piece.begin), BlockState::free};
    }
    for (const auto& [address, use] : used_) {
      if (address < start || address >= start + range.size) continue;
      blocks[address] = {Bytes(use.size),
                         use.pending ? BlockState::pending : BlockState::allocated};
    }
    Int end = -1;
    for (const auto& [address, block] : blocks) {
      if (address != end) {
        all.push_back({static_cast<StreamId>(range.pool.stream),
                       range.pool.small,
                       Bytes(address),
                       Bytes{},
                       {}});
      }
      end = address + block.size.value;
      all.back().size += block.size;
      all.back().blocks.push_back(block);
    }
  }
  return all;
}

}  // namespace shardwise::reference
