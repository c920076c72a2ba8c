#include "planner/answers/goodput.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardwise {
namespace {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): the same numbers everywhere.
class FailureClock {
 public:
  FailureClock(std::uint64_t seed, double mean) : state_(seed), mean_(mean) {}

  double next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    const double uniform = (static_cast<double>(z >> 11) + 1.0) * 0x1p-53;  // in (0, 1]
    return -mean_ * std::log(uniform);
  }

 private:
  std::uint64_t state_;
  double mean_;
};

constexpr double give_up = 1e4;  // times the useful work: the run gets nowhere

double one_run(const LongRun& run, double interval, std::uint64_t seed) {
  FailureClock clock(seed, run.mean_time_between_failures.value);
  const double segment = interval + run.write.value;
  double left = std::ceil(run.useful.value / interval), wall = 0;
  // The run ends within its last segment, whose checkpoint is the model.
  const double last = run.useful.value - (left - 1) * interval + run.write.value;
  const double most = give_up * (run.useful.value + segment);
  for (double until_failure = clock.next(); left > 0 && wall < most; until_failure = clock.next()) {
    if (until_failure >= (left - 1) * segment + last) return wall + (left - 1) * segment + last;
    left -= std::min(left - 1, std::floor(until_failure / segment));
    wall += until_failure;
    // A restart may fail as well, and is then begun again.
    for (double during = clock.next(); during < run.restart.value && wall < most;
         during = clock.next())
      wall += during;
    wall += run.restart.value;
  }
  return wall;
}

}  // namespace

Seconds young_interval(const LongRun& run) {
  return Seconds(std::sqrt(2 * run.write.value * run.mean_time_between_failures.value));
}

Seconds daly_interval(const LongRun& run) {
  const double d = run.write.value, m = run.mean_time_between_failures.value;
  if (d >= 2 * m) return Seconds(m);
  const double half = d / (2 * m);
  return Seconds(std::sqrt(2 * d * m) * (1 + std::sqrt(half) / 3 + half / 9) - d);
}

Seconds expected_wall_time(const LongRun& run, Seconds interval) {
  const double m = run.mean_time_between_failures.value;
  return Seconds(m * std::exp(run.restart.value / m) *
                 std::expm1((interval.value + run.write.value) / m) * run.useful.value /
                 interval.value);
}

SimulatedWallTime simulated_wall_time(const LongRun& run, Seconds interval, int runs,
                                      std::uint64_t seed) {
  std::vector<double> walls;
  double sum = 0;
  for (int i = 0; i < runs; ++i) {
    walls.push_back(one_run(run, interval.value, seed + static_cast<std::uint64_t>(i) * 7919));
    sum += walls.back();
  }
  std::sort(walls.begin(), walls.end());
  const auto at = [&](double share) {
    return walls[static_cast<std::size_t>(share * static_cast<double>(walls.size() - 1))];
  };
  return {Seconds(at(0.1)), Seconds(sum / runs), Seconds(at(0.9))};
}

Seconds best_simulated_interval(const LongRun& run, int runs, std::uint64_t seed) {
  const Seconds middle = daly_interval(run);
  Seconds best = middle, least = simulated_wall_time(run, middle, runs, seed).mean;
  for (int quarter = -8; quarter <= 8; ++quarter) {
    const Seconds interval = std::exp2(quarter / 4.0) * middle;
    const Seconds mean = simulated_wall_time(run, interval, runs, seed).mean;
    if (mean < least) {
      least = mean;
      best = interval;
    }
  }
  return best;
}

}  // namespace shardwise
