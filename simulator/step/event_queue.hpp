// EventQueue: the pending ends of tasks, taken in the order (time, sequence).
//
// The sequence is that of the pushes: of two events at one time, the one pushed first is taken
// first. Simulated time never runs backwards (an event is pushed no earlier than the last one
// taken), which allows a structure that is quicker than a heap: a radix heap (Ahuja, Mehlhorn,
// Orlin, Tarjan, "Faster algorithms for the shortest path problem", J. ACM 37(2), 1990) with a
// short sorted run in front, as a ladder queue has (Tang, Goh, Thng, ACM TOMACS 15(3), 2005).
//
//   run      the events before `run_end`, sorted; they are taken from its front
//   buckets  all others. Write times in base 16. An event lies in bucket (level, digit) where
//            level is the highest place at which its time differs from `base`, and digit its
//            digit there. A bucket of level L spans 16^L picoseconds, and lower buckets hold
//            earlier events.
//
// When the run is used up, the lowest bucket that is not empty becomes the run, sorted, if it is
// short (or holds one single time: level 0). A longer one is dealt out to the levels below it,
// which are empty then. So an event moves a few times by copies into the end of an array, where a
// heap swaps its way through memory.
//
// Why ties keep their order without a stored sequence number: events of one time are always
// together, in the run or in one bucket, in the order of their pushes. Both places are appended to,
// dealing goes from front to back, the sort is stable, and an event that is inserted into the run
// goes behind its equals. `run_end` is a time, so it never parts equals either.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "catalog/require.hpp"
#include "catalog/units.hpp"
#include "simulator/step/task_graph.hpp"

namespace shardwise {

struct Event {
  SimTime time;
  TaskId task;

  friend bool operator==(const Event&, const Event&) = default;
};

class EventQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // REQUIRES: the time is not before that of the last event taken, nor before 0.
  void push(Event event) {
    require(event.time >= now_, "an event is never scheduled in the past");
    ++size_;
    if (event.time < run_end_) {
      insert_in_run(event);
    } else {
      put_in_bucket(event);
    }
  }

  // Takes the first event. Now and then it calls soon(std::span<const Event>) before that, with the
  // events that will be taken next unless others are pushed before them: a chance to have their
  // data at hand. REQUIRES: !empty().
  template <class Soon>
  Event pop(Soon soon) {
    require(size_ != 0, "an event is taken from a queue that holds one");
    if (next_ == run_.size()) refill_run();
    if (next_ >= announced_) {
      announced_ = std::min(run_.size(), next_ + kShortRun);
      soon(std::span<const Event>(run_).subspan(next_, announced_ - next_));
    }
    --size_;
    now_ = run_[next_].time;
    return run_[next_++];
  }
  Event pop() {
    return pop([](std::span<const Event>) {});
  }

 private:
  static constexpr unsigned kDigitBits = 4;
  static constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  static constexpr std::size_t kLevels = 64 / kDigitBits;
  static constexpr std::size_t kShortRun = 64;

  static bool earlier(const Event& a, const Event& b) { return a.time < b.time; }

  void put_in_bucket(const Event& event) {
    const auto time = static_cast<std::uint64_t>(event.time.picoseconds);
    const std::uint64_t differing = (time ^ base_) | 1U;  // | 1: equal times are of level 0
    const auto level = (static_cast<unsigned>(std::bit_width(differing)) - 1) / kDigitBits;
    const auto digit = (time >> (level * kDigitBits)) % kDigits;
    buckets_[level * kDigits + digit].push_back(event);
    occupied_digits_[level] |= 1U << digit;
    occupied_levels_ |= 1U << level;
  }

  void insert_in_run(const Event& event) {
    if (next_ == run_.size() || !earlier(event, run_.back())) {
      run_.push_back(event);
      return;
    }
    if (run_.size() - next_ > 2 * kShortRun) {
      shorten_run();
      if (event.time >= run_end_) return put_in_bucket(event);
    }
    const auto first = run_.begin() + static_cast<std::ptrdiff_t>(next_);
    run_.insert(std::upper_bound(first, run_.end(), event, earlier), event);
  }

  // Ends the run at the time of its middle event, and puts what is not before that in buckets:
  // inserting into a long run would be slow.
  void shorten_run() {
    const auto first = run_.begin() + static_cast<std::ptrdiff_t>(next_);
    const Event middle = first[(run_.end() - first) / 2];
    const auto rest = std::lower_bound(first, run_.end(), middle, earlier);
    run_end_ = middle.time;
    for (auto event = rest; event != run_.end(); ++event) put_in_bucket(*event);
    run_.erase(rest, run_.end());
  }

  void refill_run() {
    run_.clear();
    next_ = 0;
    announced_ = 0;
    while (run_.empty()) {
      const auto level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
      const auto digit = static_cast<unsigned>(std::countr_zero(occupied_digits_[level]));
      occupied_digits_[level] &= ~(1U << digit);
      if (occupied_digits_[level] == 0) occupied_levels_ &= ~(1U << level);
      std::vector<Event>& bucket = buckets_[level * kDigits + digit];
      if (level == 0 || bucket.size() <= kShortRun) {
        make_run(bucket, level);
      } else {
        deal_out(bucket);
      }
    }
  }

  void make_run(std::vector<Event>& bucket, unsigned level) {
    run_.swap(bucket);
    const std::uint64_t span = std::uint64_t{1} << (level * kDigitBits);
    base_ = static_cast<std::uint64_t>(run_.front().time.picoseconds) & ~(span - 1);
    run_end_ = SimTime{static_cast<std::int64_t>(base_ + span)};
    if (level != 0) sort_run();
  }

  void deal_out(std::vector<Event>& bucket) {
    const SimTime first = std::min_element(bucket.begin(), bucket.end(), earlier)->time;
    base_ = static_cast<std::uint64_t>(first.picoseconds);
    for (const Event& event : bucket) put_in_bucket(event);
    bucket.clear();
  }

  void sort_run() {  // by insertion: stable, and quick for so few
    for (std::size_t i = 1; i < run_.size(); ++i) {
      const Event event = run_[i];
      std::size_t at = i;
      for (; at > 0 && earlier(event, run_[at - 1]); --at) run_[at] = run_[at - 1];
      run_[at] = event;
    }
  }

  std::vector<Event> run_;
  std::size_t next_ = 0;       // of the run, the first not taken yet
  std::size_t announced_ = 0;  // of the run, the first not told to `soon` yet
  SimTime run_end_;
  SimTime now_;  // of the last event taken

  std::array<std::vector<Event>, kLevels * kDigits> buckets_;
  std::array<std::uint32_t, kLevels> occupied_digits_{};  // per level, bit d: bucket d holds events
  std::uint32_t occupied_levels_ = 0;
  std::uint64_t base_ = 0;
  std::size_t size_ = 0;
};

}  // namespace shardwise
