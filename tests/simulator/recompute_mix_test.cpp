#include "simulator/graphs/recompute_mix.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/catch.hpp"
#include "tests/simulator/time_and_bytes.hpp"

using namespace shardwise;

namespace {

RecomputeOption option(std::int64_t time, std::int64_t bytes) {
  return {{}, Bytes(bytes), Picoseconds(time)};
}

// Two kinds: up to 3 blocks with up to 4 options, up to 2 blocks with up to 3.
std::vector<EqualBlocks> random_kinds(std::mt19937& random) {
  std::vector<EqualBlocks> kinds;
  for (int k = 0; k < 2; ++k) {
    std::vector<TimeAndBytes> points;
    for (int o = 0; o < 4 - k; ++o)
      points.push_back(
          {static_cast<std::int64_t>(random() % 50), static_cast<std::int64_t>(random() % 50)});
    EqualBlocks& kind = kinds.emplace_back();
    kind.blocks = static_cast<int>(random() % static_cast<unsigned>(4 - k));
    for (const TimeAndBytes p : unbeaten_of(points))
      kind.options.push_back(option(p.time, p.bytes));
  }
  return kinds;
}

std::vector<TimeAndBytes> assignments(const std::vector<EqualBlocks>& kinds) {
  std::vector<TimeAndBytes> all{{0, 0}};
  for (const EqualBlocks& kind : kinds)
    for (int b = 0; b < kind.blocks; ++b) {
      std::vector<TimeAndBytes> longer;
      for (const TimeAndBytes p : all)
        for (const RecomputeOption& o : kind.options)
          longer.push_back({p.time + o.time.value, p.bytes + o.kept.value});
      all = std::move(longer);
    }
  return all;
}

std::vector<TimeAndBytes> points(const std::vector<RecomputeMix>& mixes) {
  std::vector<TimeAndBytes> list;
  for (const RecomputeMix& mix : mixes) list.push_back({mix.time.value, mix.kept.value});
  return list;
}

bool counts_all_blocks(const RecomputeMix& mix, const std::vector<EqualBlocks>& kinds) {
  TimeAndBytes sum{0, 0};
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    int blocks = 0;
    for (std::size_t o = 0; o < mix.counts[k].size(); ++o) {
      blocks += mix.counts[k][o];
      sum.time += mix.counts[k][o] * kinds[k].options[o].time.value;
      sum.bytes += mix.counts[k][o] * kinds[k].options[o].kept.value;
    }
    if (blocks != kinds[k].blocks) return false;
  }
  return sum == TimeAndBytes{mix.time.value, mix.kept.value};
}

}  // namespace

TEST_CASE("mixes are the unbeaten of all assignments of options to blocks", "[recompute]") {
  std::mt19937 random(29);
  for (int round = 0; round < 200; ++round) {
    const auto kinds = random_kinds(random);
    const auto mixes = recompute_mixes(kinds).list;
    CHECK(points(mixes) == unbeaten_of(assignments(kinds)));
    for (const RecomputeMix& mix : mixes) CHECK(counts_all_blocks(mix, kinds));
  }
}

TEST_CASE("below a line no unbeaten mix is lost", "[recompute]") {
  std::mt19937 random(31);
  std::size_t below = 0, left_out = 0;
  for (int round = 0; round < 300; ++round) {
    const auto kinds = random_kinds(random);
    const auto all = unbeaten_of(assignments(kinds));
    const double price = static_cast<double>(random() % 40) / 8.0;
    const TimeAndBytes through = all[random() % all.size()];
    const auto found = points(
        recompute_mixes(kinds, MixLine{price, Picoseconds(through.time), Bytes(through.bytes)})
            .list);
    const auto cost = [&](TimeAndBytes p) {
      return static_cast<double>(p.time) + price * static_cast<double>(p.bytes);
    };
    for (const TimeAndBytes p : all) {
      if (cost(p) > cost(through)) continue;
      ++below;
      CHECK(std::find(found.begin(), found.end(), p) != found.end());
    }
    left_out += all.size() - std::min(all.size(), found.size());
  }
  CHECK(below > 500);
  CHECK(left_out > 100);
}

// 60 equal blocks with a hundred options: of the mixes below the line too many are unbeaten.
TEST_CASE("where too many mixes are below a line, all but one block are on the path",
          "[recompute]") {
  std::mt19937 random(41);
  std::vector<TimeAndBytes> choices;
  for (int o = 0; o < 100; ++o)
    choices.push_back({o * 1000 + static_cast<std::int64_t>(random() % 1000),
                       (100 - o) * (100 - o) * 10 + static_cast<std::int64_t>(random() % 100)});
  std::vector<EqualBlocks> kinds{{60, {}}};
  for (const TimeAndBytes p : unbeaten_of(choices))
    kinds[0].options.push_back(option(p.time, p.bytes));
  const auto path = recompute_path(kinds);
  const RecomputeMix& middle = path[path.size() / 2];
  const double price = 1;
  const auto found_below = recompute_mixes(
      kinds, MixLine{price, middle.time + Picoseconds(100'000), middle.kept + Bytes(100'000)});
  CHECK_FALSE(found_below.all);
  const auto& mixes = found_below.list;
  CHECK(mixes.size() > 60);
  // Blocks that moved between options: twice as many counts differ by one.
  const auto moved = [](const RecomputeMix& a, const RecomputeMix& b) {
    int sum = 0;
    for (std::size_t o = 0; o < a.counts[0].size(); ++o)
      sum += std::abs(a.counts[0][o] - b.counts[0][o]);
    return sum / 2;
  };
  std::size_t far = 0, unordered = 0;
  for (std::size_t m = 0; m < mixes.size(); ++m) {
    CHECK(counts_all_blocks(mixes[m], kinds));
    if (m > 0 && (mixes[m].time < mixes[m - 1].time || mixes[m].kept >= mixes[m - 1].kept))
      ++unordered;
    if (std::none_of(path.begin(), path.end(),
                     [&](const RecomputeMix& on) { return moved(mixes[m], on) <= 1; }))
      ++far;
  }
  CHECK(unordered == 0);
  CHECK(far == 0);
  // None on the path below the line is left out: nothing beats a corner of the hull.
  const double ceiling = static_cast<double>((middle.time + Picoseconds(100'000)).value) +
                         price * static_cast<double>((middle.kept + Bytes(100'000)).value);
  const auto found = points(mixes);
  for (const TimeAndBytes p : points(path))
    if (static_cast<double>(p.time) + price * static_cast<double>(p.bytes) < ceiling)
      CHECK(std::find(found.begin(), found.end(), p) != found.end());
}

TEST_CASE("the path changes the blocks whose bytes are cheapest to save first", "[recompute]") {
  // Options (time, kept): (0, 10), (1, 6), (4, 5), (6, 1): per byte 1/4 to the second, then 5/5 to
  // the last; the third lies above the line from the second to the last (3 for one byte).
  const std::vector<EqualBlocks> kinds{
      {2, {option(0, 10), option(1, 6), option(4, 5), option(6, 1)}}};
  CHECK(points(recompute_path(kinds)) ==
        std::vector<TimeAndBytes>{{0, 20}, {1, 16}, {2, 12}, {7, 7}, {12, 2}});
}

TEST_CASE("random paths lie on the lower hull: no assignment is below any of their edges",
          "[recompute]") {
  std::mt19937 random(37);
  for (int round = 0; round < 200; ++round) {
    const auto kinds = random_kinds(random);
    const auto path = points(recompute_path(kinds));
    const auto all = assignments(kinds);
    for (const RecomputeMix& mix : recompute_path(kinds)) CHECK(counts_all_blocks(mix, kinds));
    bool hull = true;
    for (std::size_t i = 1; i < path.size(); ++i)
      for (const TimeAndBytes p : all) {
        // Twice the area of the triangle: not negative where p is on or above the edge.
        const std::int64_t area =
            (path[i].time - path[i - 1].time) * (p.bytes - path[i - 1].bytes) -
            (path[i].bytes - path[i - 1].bytes) * (p.time - path[i - 1].time);
        hull = hull && area >= 0;
      }
    CHECK(hull);
  }
}
