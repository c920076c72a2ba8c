#include "simulator/step/event_queue.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "tests/catch.hpp"

using namespace shardwise;

namespace {

Event event_at(std::int64_t picoseconds, std::uint32_t task) {
  return {SimTime{picoseconds}, TaskId{task}};
}

// The definition: a heap of (time, sequence), the sequence being that of the pushes.
class Reference {
 public:
  void push(Event event) { heap_.emplace(event.time.picoseconds, sequence_++, event.task.index); }
  Event pop() {
    const auto [time, sequence, task] = heap_.top();
    heap_.pop();
    return event_at(time, task);
  }

 private:
  using Entry = std::tuple<std::int64_t, std::uint64_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
  std::uint64_t sequence_ = 0;
};

// Pops both until they are empty; after each pop, while `pushes` last, pushes up to two events
// delay() later. The task numbers the pushes, so equal tasks mean equal order of ties.
template <class Delay>
void check_against_reference(std::uint32_t first_pushes, std::uint32_t pushes, Delay delay) {
  EventQueue queue;
  Reference reference;
  std::uint32_t task = 0;
  const auto push = [&](std::int64_t time) {
    queue.push(event_at(time, task));
    reference.push(event_at(time, task++));
  };
  for (std::uint32_t i = 0; i < first_pushes; ++i) push(delay());
  bool equal = true;
  std::uint32_t pops = 0;
  while (equal && !queue.empty()) {
    const Event event = queue.pop();
    equal = event == reference.pop();
    ++pops;
    for (int i = 0; i < 1 + static_cast<int>(pops % 2) && task < pushes; ++i) {
      push(event.time.picoseconds + delay());
    }
  }
  CHECK(equal);
  CHECK(pops == task);
  CHECK(queue.size() == 0);
}

}  // namespace

TEST_CASE("Events are taken in the order (time, sequence) of any monotone pushes") {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t bound) {
    return static_cast<std::int64_t>(random() % bound);
  };
  SECTION("few distinct times: nearly all are ties") {
    check_against_reference(500, 40'000, [&] { return below(4); });
  }
  SECTION("milliseconds, as kernels") {
    check_against_reference(3'000, 60'000, [&] { return 500'000'000 + below(1'000'000'000); });
  }
  SECTION("every scale from a picosecond to an hour") {
    check_against_reference(300, 60'000, [&] { return below(std::uint64_t{1} << below(52)); });
  }
  SECTION("a wide run that fills up: two far apart, then a growing crowd between them") {
    int pushed = 0;
    check_against_reference(2, 20'000, [&] {
      return pushed++ < 2 ? (std::int64_t{1} << 30) + pushed * (1 << 20) : below(200'000);
    });
  }
  SECTION("all at once, then nothing") {
    check_against_reference(20'000, 20'000, [] { return std::int64_t{1'000}; });
  }
}

TEST_CASE("A lone far event followed by many near ones: the sorted run is cut back") {
  // The run spans the far event's whole bucket, so each near event is inserted into it, latest
  // time first: the worst place.
  EventQueue queue;
  queue.push(event_at(1 << 30, 0));
  queue.push(event_at((1 << 30) + (1 << 20), 1));
  CHECK(queue.pop() == event_at(1 << 30, 0));
  constexpr std::uint32_t kNear = 2'000;
  for (std::uint32_t i = 0; i < kNear; ++i) {
    queue.push(event_at((1 << 30) + static_cast<std::int64_t>(kNear - i) * 100, 2 + i));
  }
  for (std::uint32_t i = kNear; i-- > 0;) {
    CHECK(queue.pop() == event_at((1 << 30) + static_cast<std::int64_t>(kNear - i) * 100, 2 + i));
  }
  CHECK(queue.pop() == event_at((1 << 30) + (1 << 20), 1));
  CHECK(queue.empty());
}

TEST_CASE("The largest time the clock has is in order too") {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  EventQueue queue;
  queue.push(event_at(kLast, 0));
  queue.push(event_at(0, 1));
  queue.push(event_at(kLast, 2));
  queue.push(event_at(kLast - 1, 3));
  CHECK(queue.pop() == event_at(0, 1));
  CHECK(queue.pop() == event_at(kLast - 1, 3));
  CHECK(queue.pop() == event_at(kLast, 0));
  queue.push(event_at(kLast, 4));
  CHECK(queue.pop() == event_at(kLast, 2));
  CHECK(queue.pop() == event_at(kLast, 4));
}

TEST_CASE("Events are announced before they are taken, those to come first in front") {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 1'000; ++i)
    queue.push(event_at(static_cast<std::int64_t>(i) * 7, i));
  std::vector<bool> announced(1'000, false);
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    const Event event = queue.pop([&](std::span<const Event> events) {
      REQUIRE_FALSE(events.empty());
      CHECK(events.front().task.index == i);
      for (const Event& soon : events) announced[soon.task.index] = true;
    });
    CHECK(announced[event.task.index]);
  }
}

TEST_CASE("A push into the past and a pop of nothing are our own bugs") {
  EventQueue queue;
  CHECK_THROWS_AS(queue.pop(), BrokenInvariant);
  CHECK_THROWS_AS(queue.push(event_at(-1, 0)), BrokenInvariant);
  queue.push(event_at(10, 0));
  queue.pop();
  CHECK_THROWS_AS(queue.push(event_at(9, 1)), BrokenInvariant);
  queue.push(event_at(10, 2));
  CHECK(queue.pop() == event_at(10, 2));
}
