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

// Beyond so many failures a run is not played: the sums of so many are normal, and a mean that is
// played is no nearer. Ordinary runs see some hundreds.
constexpr double most_played = 5000;

// A run as segments of work with their checkpoints. It ends within its last segment, whose
// checkpoint is the model.
struct Segments {
  double length, count, last;
  double most;  // the time at which it gets nowhere

  Segments(const LongRun& run, double interval)
      : length(interval + run.write.value),
        count(std::ceil(run.useful.value / interval)),
        last(run.useful.value - (count - 1) * interval + run.write.value),
        most(give_up * (run.useful.value + length)) {}
};

struct Moments {
  double mean = 0, variance = 0;
};

// Of the time until `length` seconds in a row have passed without a failure, which come at random
// with mean time m between them and cost what they cut off, X, and what follows them, Y:
//   failures N         E = e^(length / m) - 1     Var = E (E + 1)       geometric
//   X, below length    E = m - length / E[N]      Var = m^2 - length^2 (E[N] + 1) / E[N]^2
//   time               E = length + E[N] E[X + Y]
//                      Var = E[N] Var(X + Y) + Var(N) E[X + Y]^2
Moments until_done(double length, double m, const Moments& follows) {
  if (length <= 0) return {};
  const double failures = std::expm1(length / m), after = length / failures;
  const Moments each{m - after + follows.mean,
                     std::max(0.0, m * m - after * after * (failures + 1)) + follows.variance};
  return {length + failures * each.mean,
          failures * each.variance + failures * (failures + 1) * each.mean * each.mean};
}

Moments whole_run(const LongRun& run, const Segments& s) {
  const double m = run.mean_time_between_failures.value;
  const Moments restart = until_done(run.restart.value, m, {});  // may fail as well
  const Moments last = until_done(s.last, m, restart);
  if (s.count <= 1) return last;
  const Moments each = until_done(s.length, m, restart);
  return {(s.count - 1) * each.mean + last.mean, (s.count - 1) * each.variance + last.variance};
}

double one_run(const LongRun& run, double interval, std::uint64_t seed) {
  FailureClock clock(seed, run.mean_time_between_failures.value);
  const auto [segment, count, last, most] = Segments(run, interval);
  double left = count, wall = 0;
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
  const Segments segments(run, interval.value);
  const Moments whole = whole_run(run, segments);
  const bool gets_nowhere = !(whole.mean < segments.most);
  const double mean = gets_nowhere ? segments.most : whole.mean;
  if (mean / run.mean_time_between_failures.value > most_played) {
    constexpr double tenth = 1.2816;  // standard deviations of a normal from its 10th percentile
    const double off = gets_nowhere ? 0 : tenth * std::sqrt(whole.variance);
    return {Seconds(std::max(run.useful.value, mean - off)), Seconds(mean),
            Seconds(std::min(segments.most, mean + off))};
  }
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
