#include "simulator/graphs/recompute_mix.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "simulator/graphs/unbeaten.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_looked_at = 1 << 16;  // sums of mixes and options: a millisecond

double priced(Picoseconds time, Bytes kept, double price) {
  return static_cast<double>(time.value) + price * static_cast<double>(kept.value);
}

double price_between(const RecomputeOption& a, const RecomputeOption& b) {
  return static_cast<double>((b.time - a.time).value) /
         static_cast<double>((a.kept - b.kept).value);
}

// The next corner of the hull after option `from`: the cheapest per byte, the farthest of equals.
std::optional<std::size_t> next_corner(const std::vector<RecomputeOption>& options,
                                       std::size_t from) {
  std::optional<std::size_t> best;
  for (std::size_t o = from + 1; o < options.size(); ++o)
    if (!best ||
        price_between(options[from], options[o]) <= price_between(options[from], options[*best]))
      best = o;
  return best;
}

// One kind of blocks goes from one option to another.
struct Change {
  double price = 0;
  std::size_t kind = 0, from = 0, to = 0;
};

std::vector<Change> changes(const std::vector<EqualBlocks>& kinds) {
  std::vector<Change> all;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    std::size_t at = 0;
    while (const auto to = next_corner(kinds[k].options, at)) {
      all.push_back({price_between(kinds[k].options[at], kinds[k].options[*to]), k, at, *to});
      at = *to;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Change& a, const Change& b) { return a.price < b.price; });
  return all;
}

RecomputeMix empty_mix(const std::vector<EqualBlocks>& kinds) {
  RecomputeMix mix;
  for (const EqualBlocks& kind : kinds) mix.counts.emplace_back(kind.options.size(), 0);
  return mix;
}

// A mix of the first blocks: a mix of one block less, and that block's option.
struct Node {
  Bytes kept;
  Picoseconds time;
  std::size_t shorter = 0, option = 0;
};

bool before(const Node& a, const Node& b) {
  return std::tie(a.time, a.kept, a.shorter, a.option) <
         std::tie(b.time, b.kept, b.shorter, b.option);
}

// Node `m` of the last layer, with its options counted back to the first block.
RecomputeMix told(const std::vector<EqualBlocks>& kinds,
                  const std::vector<std::vector<Node>>& layers, std::size_t m) {
  RecomputeMix mix = empty_mix(kinds);
  mix.kept = layers.back()[m].kept;
  mix.time = layers.back()[m].time;
  std::size_t layer = layers.size();
  for (std::size_t k = kinds.size(); k-- > 0;)
    for (int block = 0; block < kinds[k].blocks; ++block) {
      const Node& node = layers[--layer][m];
      ++mix.counts[k][node.option];
      m = node.shorter;
    }
  return mix;
}

// For each block in order of kinds, the least that it and all later blocks can cost.
std::vector<double> least_to_come(const std::vector<EqualBlocks>& kinds, double price) {
  std::vector<double> least;
  for (const EqualBlocks& kind : kinds) {
    double own = std::numeric_limits<double>::infinity();
    for (const RecomputeOption& o : kind.options)
      own = std::min(own, priced(o.time, o.kept, price));
    least.insert(least.end(), static_cast<std::size_t>(kind.blocks), own);
  }
  for (std::size_t i = least.size(); i-- > 1;) least[i - 1] += least[i];
  least.push_back(0);
  return least;
}

// Of mixes with one block more, the least that those faster than a given one keep. By steps of
// time, so that one pass finds it: none of the same step counts. What they beat is not unbeaten.
class FasterMixes {
 public:
  // REQUIRES mixes and options by time, rising.
  FasterMixes(const std::vector<Node>& shorter, const std::vector<RecomputeOption>& options)
      : first_(shorter.front().time + options.front().time),
        least_(steps_per_mix * shorter.size() + 1,
               Bytes(std::numeric_limits<std::int64_t>::max())) {
    const Picoseconds last = shorter.back().time + options.back().time;
    per_picosecond_ = static_cast<double>(least_.size() - 1) /
                      std::max(1.0, static_cast<double>((last - first_).value));
  }

  void add(Bytes kept, Picoseconds time) {
    Bytes& least = least_[step(time)];
    least = std::min(least, kept);
  }
  // Once all are added.
  void sum_up() {
    for (std::size_t i = 1; i < least_.size(); ++i) least_[i] = std::min(least_[i], least_[i - 1]);
  }
  bool beat(Bytes kept, Picoseconds time) const {
    const std::size_t at = step(time);
    return at > 0 && least_[at - 1] <= kept;
  }

 private:
  static constexpr std::size_t steps_per_mix = 4;  // enough that few are left to be sorted

  std::size_t step(Picoseconds time) const {
    const auto at = static_cast<double>((time - first_).value) * per_picosecond_;
    return std::min(least_.size() - 1, static_cast<std::size_t>(at));
  }

  Picoseconds first_;
  double per_picosecond_ = 0;
  std::vector<Bytes> least_;  // by step of time
};

// Unbeaten mixes with one more block, below the ceiling.
std::vector<Node> one_block_more(const std::vector<Node>& shorter,
                                 const std::vector<RecomputeOption>& options, double price,
                                 double ceiling) {
  std::vector<Node> longer;
  if (shorter.empty()) return longer;
  const auto each_below = [&](auto&& use) {
    for (std::size_t m = 0; m < shorter.size(); ++m)
      for (std::size_t o = 0; o < options.size(); ++o) {
        const Bytes kept = shorter[m].kept + options[o].kept;
        const Picoseconds time = shorter[m].time + options[o].time;
        if (priced(time, kept, price) <= ceiling) use(Node{kept, time, m, o});
      }
  };
  FasterMixes faster(shorter, options);
  each_below([&](const Node& n) { faster.add(n.kept, n.time); });
  faster.sum_up();
  each_below([&](const Node& n) {
    if (!faster.beat(n.kept, n.time)) longer.push_back(n);
  });
  keep_unbeaten(longer, before);
  return longer;
}

// A mix of the path of which one block takes another option.
struct Beside {
  Bytes kept;
  Picoseconds time;
  std::size_t mix = 0, kind = 0, from = 0, to = 0;
};

bool comes_before(const Beside& a, const Beside& b) {
  return std::tie(a.time, a.kept, a.mix, a.kind, a.from, a.to) <
         std::tie(b.time, b.kept, b.mix, b.kind, b.from, b.to);
}

// The unbeaten of those below the ceiling.
std::vector<RecomputeMix> mixes_beside_path(const std::vector<EqualBlocks>& kinds, double price,
                                            double ceiling) {
  const std::vector<RecomputeMix> path = recompute_path(kinds);
  std::vector<Beside> all;
  for (std::size_t m = 0; m < path.size(); ++m)
    for (std::size_t k = 0; k < kinds.size(); ++k)
      for (std::size_t from = 0; from < kinds[k].options.size(); ++from) {
        if (path[m].counts[k][from] == 0) continue;
        const RecomputeOption& one = kinds[k].options[from];
        for (std::size_t to = 0; to < kinds[k].options.size(); ++to) {
          const RecomputeOption& other = kinds[k].options[to];
          const Beside b{path[m].kept - one.kept + other.kept,
                         path[m].time - one.time + other.time,
                         m,
                         k,
                         from,
                         to};
          if (priced(b.time, b.kept, price) <= ceiling) all.push_back(b);
        }
      }
  keep_unbeaten(all, comes_before);
  std::vector<RecomputeMix> mixes;
  for (const Beside& b : all) {
    RecomputeMix mix = path[b.mix];
    --mix.counts[b.kind][b.from];
    ++mix.counts[b.kind][b.to];
    mix.kept = b.kept;
    mix.time = b.time;
    mixes.push_back(std::move(mix));
  }
  return mixes;
}

}  // namespace

std::vector<RecomputeMix> recompute_path(const std::vector<EqualBlocks>& kinds) {
  RecomputeMix mix = empty_mix(kinds);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    mix.counts[k].front() = kinds[k].blocks;
    mix.kept += static_cast<std::int64_t>(kinds[k].blocks) * kinds[k].options.front().kept;
    mix.time += static_cast<std::int64_t>(kinds[k].blocks) * kinds[k].options.front().time;
  }
  std::vector<RecomputeMix> path{mix};
  for (const Change& c : changes(kinds)) {
    const RecomputeOption& from = kinds[c.kind].options[c.from];
    const RecomputeOption& to = kinds[c.kind].options[c.to];
    for (int block = 0; block < kinds[c.kind].blocks; ++block) {
      --mix.counts[c.kind][c.from];
      ++mix.counts[c.kind][c.to];
      mix.kept = mix.kept - from.kept + to.kept;
      mix.time = mix.time - from.time + to.time;
      path.push_back(mix);
    }
  }
  return path;
}

RecomputeMixes recompute_mixes(const std::vector<EqualBlocks>& kinds,
                               const std::optional<MixLine>& line) {
  const double price = line ? line->picoseconds_per_byte : 0;
  // Sums of doubles: what is equal but for rounding counts as below.
  const double ceiling = line ? priced(line->time, line->kept, price) * (1 + 1e-12)
                              : std::numeric_limits<double>::infinity();
  const std::vector<double> to_come = least_to_come(kinds, price);
  std::vector<std::vector<Node>> layers{{Node{}}};
  std::size_t looked_at = 0;
  for (const EqualBlocks& kind : kinds)
    for (int block = 0; block < kind.blocks; ++block) {
      looked_at += layers.back().size() * kind.options.size();
      if (line && looked_at > most_looked_at)
        return {mixes_beside_path(kinds, price, ceiling), false};
      layers.push_back(
          one_block_more(layers.back(), kind.options, price, ceiling - to_come[layers.size()]));
    }
  RecomputeMixes mixes;
  for (std::size_t m = 0; m < layers.back().size(); ++m)
    mixes.list.push_back(told(kinds, layers, m));
  return mixes;
}

}  // namespace shardwise
