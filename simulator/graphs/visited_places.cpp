#include "simulator/graphs/visited_places.hpp"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/normal.hpp>

namespace shardwise {
namespace {

// The chance that `drawn` of `all` groups, drawn without putting any back, have `hits` out of
// `marked` of them (the hypergeometric distribution).
double chance_of(int hits, int marked, int drawn, int all) {
  const auto choose = [](int n, int k) {
    if (k < 0 || k > n) return 0.0;
    double ways = 1;
    for (int i = 1; i <= k; ++i) ways *= static_cast<double>(n - k + i) / i;
    return ways;
  };
  return choose(marked, hits) * choose(all - marked, drawn - hits) / choose(all, drawn);
}

// The chance that a place which holds `whole` groups is visited.
double chance_to_visit(const MixtureOfExperts& moe, int whole) {
  double visited = 0;
  for (int chosen = 1; chosen <= whole && chosen <= moe.chosen_groups; ++chosen) {
    const double elsewhere = 1.0 - static_cast<double>(chosen) / moe.chosen_groups;
    visited += chance_of(chosen, whole, moe.chosen_groups, moe.groups) *
               (1.0 - std::pow(elsewhere, moe.top_k));
  }
  return visited;
}

}  // namespace

double visited_places(const MixtureOfExperts& moe, double places) {
  if (places >= moe.groups) {  // a group lies at one place or more
    const double open = places * moe.chosen_groups / moe.groups;
    return open * (1.0 - std::pow(1.0 - 1.0 / open, moe.top_k));
  }
  // Some places hold one group more than others.
  const int fewer = static_cast<int>(moe.groups / places);
  const double more = moe.groups - places * fewer;
  return more * chance_to_visit(moe, fewer + 1) + (places - more) * chance_to_visit(moe, fewer);
}

double fullest_place(double spread, std::int64_t experts, int places) {
  if (spread <= 0 || places <= 1) return 1;
  const double below = (places - 0.375) / (places + 0.25);
  const double deviations = boost::math::quantile(boost::math::normal(), below);
  const double variance = std::log1p(spread * spread / static_cast<double>(experts));  // of the log
  return std::max(1.0, std::exp(std::sqrt(variance) * deviations - variance / 2));
}

double fullest_rank(const Workload& w, int ranks) {
  const bool all_alike = w.pads_experts || w.own_code().feeds_all_experts;
  if (ranks <= 1 || all_alike || !w.model.moe) return 1;
  const int experts = std::max(1, w.model.moe->experts / ranks);
  return std::max(w.expert_imbalance, fullest_place(w.expert_spread, experts, ranks));
}

}  // namespace shardwise
