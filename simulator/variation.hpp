// Variation: GPUs that are not all alike, drawn from a seed.
//
// Jitter: every kernel task takes f times its cost, f uniform in 1 +- sqrt(3) j, which has mean 1
// and standard deviation j (at most 1/2, so that f stays positive). Straggler: one GPU, drawn from
// the seed, takes s times as long for all its kernels. Numbers come from a hash of seed, rank and
// task (splitmix64: Steele, Lea, Flood, OOPSLA 2014), so they depend neither on the order of events
// nor on the compiler.
#pragma once

#include <cstdint>

namespace shardwise {

struct Variation {
  double jitter = 0;     // relative standard deviation of a kernel task's time
  double straggler = 1;  // how many times longer the slow GPU takes
  std::uint64_t seed = 0;

  friend bool operator==(const Variation&, const Variation&) = default;

  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  constexpr int slow_rank(int ranks) const {
    return static_cast<int>(mixed(seed) % static_cast<std::uint64_t>(ranks));
  }
  // What the `draw`-th task of a rank takes, relative to its cost.
  constexpr double factor(int rank, std::uint64_t draw, int ranks) const {
    constexpr double root_3 = 1.7320508075688772;
    const std::uint64_t hash =
        mixed(mixed(seed + 1) ^ mixed(static_cast<std::uint64_t>(rank) << 32U) ^ draw);
    const double uniform = static_cast<double>(hash >> 11U) * 0x1p-53;  // [0, 1)
    const double slow = straggler > 1 && rank == slow_rank(ranks) ? straggler : 1.0;
    return slow * (1 + root_3 * jitter * (2 * uniform - 1));
  }
};

}  // namespace shardwise
