#include "calibrate/measuring/stopping.hpp"

#include "tests/catch.hpp"

using namespace shardwise;

TEST_CASE("median and spread of samples, quartiles interpolated") {
  // Sorted 1 2 3 4 5: median 3, quartiles 2 and 4, spread (4 - 2) / 3.
  CHECK(centre({5, 1, 4, 2, 3}).median == 3);
  CHECK(centre({5, 1, 4, 2, 3}).spread == Approx(2.0 / 3.0));
  // Sorted 1 2 3 10: median 2.5, quartiles 1.75 and 4.75.
  CHECK(centre({10, 1, 3, 2}).median == 2.5);
  CHECK(centre({10, 1, 3, 2}).spread == Approx(3.0 / 2.5));
  CHECK(centre({7}).spread == 0);
}

TEST_CASE("the error of the median falls with the root of the samples") {
  // 1 2 3 4 5: sigma = (2/3) / 1.34898 of the median; sqrt(pi/2) / sqrt(5) of it: 0.2770.
  CHECK(median_error({1, 2, 3, 4, 5}) == Approx(0.27700).epsilon(1e-4));
  std::vector<double> often;
  for (int i = 0; i < 500; ++i) often.push_back(1 + i % 5);
  // The same spread over 500 samples: smaller by 10.
  CHECK(median_error(often) == Approx(0.027700).epsilon(1e-4));
  CHECK(median_error({2, 2, 2}) == 0);
}

TEST_CASE("a bench is known well after enough samples, enough time and a small error") {
  const StoppingRule rule{5, 20, Seconds(1e-3), 0.01};
  const std::vector<double> equal(5, 1.0);
  const Seconds long_enough(2e-3);
  CHECK(known_well(rule, equal, long_enough));
  CHECK_FALSE(known_well(rule, std::vector<double>(4, 1.0), long_enough));
  CHECK_FALSE(known_well(rule, equal, Seconds(0.5e-3)));
  CHECK_FALSE(known_well(rule, {1, 2, 3, 4, 5}, long_enough));
  // At the most samples it stops, whatever the error.
  std::vector<double> noisy;
  for (int i = 0; i < 20; ++i) noisy.push_back(1 + i);
  CHECK(known_well(rule, noisy, Seconds(0)));
}
