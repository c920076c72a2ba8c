#include "simulator/network/flow_network.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace shardwise;

namespace {

struct Flow {
  double ceiling = 1e9;
  std::vector<std::pair<std::size_t, double>> loads;  // link, weight
  std::int64_t members = 1;
};

// The rates of flows that are all active, by flow.
std::vector<double> shared(const std::vector<double>& capacities, const std::vector<Flow>& flows) {
  FlowNetwork network;
  for (const double c : capacities) network.add_link(BytesPerSecond(c));
  std::vector<FlowClassId> classes;
  for (const Flow& f : flows) {
    std::vector<FlowLoad> loads;
    for (const auto& [link, weight] : f.loads)
      loads.push_back({LinkId{static_cast<std::uint32_t>(link)}, weight});
    classes.push_back(network.add_class(BytesPerSecond(f.ceiling), loads));
    network.start(classes.back(), f.members);
  }
  network.share();
  std::vector<double> rates;
  for (const FlowClassId c : classes) rates.push_back(network.rate(c).value);
  return rates;
}

void check_rates(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("flow " << i);
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-9));
  }
}

}  // namespace

// One link of 12: three flows get 4 each; one that can only do 2 leaves (12 - 2) / 2 = 5.
TEST_CASE("one link is divided evenly, up to what each can use", "[flow_network]") {
  check_rates(shared({12}, {{100, {{0, 1}}}, {100, {{0, 1}}}, {100, {{0, 1}}}}), {4, 4, 4});
  check_rates(shared({12}, {{100, {{0, 1}}}, {2, {{0, 1}}}, {100, {{0, 1}}}}), {5, 2, 5});
}

// Nobody is short: every flow has its ceiling, to the last bit.
TEST_CASE("flows that fit keep their ceilings exactly", "[flow_network]") {
  const auto rates = shared({10, 10}, {{4.3, {{0, 1}, {1, 1}}}, {5.1, {{0, 1}}}});
  CHECK(rates[0] == 4.3);
  CHECK(rates[1] == 5.1);
}

// The parking lot (Bertsekas, Gallager, section 6.5.2): n links of capacity C in a row, one long
// flow over all of them and one short flow on each. All get C / 2. If link 0 has only C / 4 left to
// share, both its flows have C / 8, and the long flow leaves C - C / 8 on every other link.
TEST_CASE("a long flow and short flows in its way", "[flow_network]") {
  constexpr std::size_t n = 4;
  std::vector<Flow> flows{{1e3, {}}};
  for (std::size_t link = 0; link < n; ++link) {
    flows.front().loads.emplace_back(link, 1);
    flows.push_back({1e3, {{link, 1}}});
  }
  check_rates(shared({8, 8, 8, 8}, flows), {4, 4, 4, 4, 4});
  check_rates(shared({2, 8, 8, 8}, flows), {1, 1, 7, 7, 7});
}

// Two links 10 and 4; A over both, B on the first, C and D on the second. The second fills first,
// at 4 / 3; then B takes 10 - 4 / 3.
TEST_CASE("links fill up one after the other", "[flow_network]") {
  check_rates(
      shared({10, 4}, {{99, {{0, 1}, {1, 1}}}, {99, {{0, 1}}}, {99, {{1, 1}}}, {99, {{1, 1}}}}),
      {4.0 / 3, 10 - 4.0 / 3, 4.0 / 3, 4.0 / 3});
}

// A flow that crosses a link twice loads it with 2 per byte: x + 2 x = 12, x = 4. The same where
// the link is named twice.
TEST_CASE("weights count what a byte loads, not what is fair", "[flow_network]") {
  check_rates(shared({12}, {{99, {{0, 1}}}, {99, {{0, 2}}}}), {4, 4});
  check_rates(shared({12}, {{99, {{0, 1}}}, {99, {{0, 1}, {0, 1}}}}), {4, 4});
}

// Four GPUs of a box copy from host memory: slots of 25, a root complex of 60, host memory of 80
// that a second kind of traffic (the optimizer on the CPU, able to use 50) shares. Memory fills
// first, at x = 80 / 5 = 16. Without the optimizer the root complex does, at 60 / 4 = 15; with only
// two copies nobody is short of it.
TEST_CASE("copies of a box share its root complex and its memory", "[flow_network]") {
  FlowNetwork network;
  const LinkId root = network.add_link(BytesPerSecond(64));
  const LinkId memory = network.add_link(BytesPerSecond(80));
  std::vector<FlowClassId> copies;
  for (int gpu = 0; gpu < 4; ++gpu) {
    const LinkId slot = network.add_link(BytesPerSecond(25));
    copies.push_back(
        network.add_class(BytesPerSecond(25), std::array<FlowLoad, 3>{{{slot}, {root}, {memory}}}));
    network.start(copies.back());
  }
  const FlowClassId optimizer =
      network.add_class(BytesPerSecond(50), std::array<FlowLoad, 1>{{{memory}}});
  network.start(optimizer);
  network.share();
  // Root: 64 / 4 = 16 = 80 / 5: both fill up together.
  for (const FlowClassId c : copies) CHECK(network.rate(c).value == Approx(16));
  CHECK(network.rate(optimizer).value == Approx(16));
  network.stop(copies[2]);
  network.stop(copies[3]);
  network.share();
  // Two copies: 25 each at their slots; the optimizer has 80 - 50 = 30.
  CHECK(network.rate(copies[0]).value == 25);
  CHECK(network.rate(optimizer).value == Approx(30));
  network.stop(optimizer);
  network.share();
  CHECK(network.rate(copies[1]).value == 25);
  CHECK(network.active_classes() == std::vector<FlowClassId>{copies[0], copies[1]});
}

// A class of n active members shares as n flows of their own do. Whether its members came at once
// or one after the other makes no difference at all, which is what lets one flow of a folded
// simulation stand for n of an unfolded one.
TEST_CASE("members of a class share as flows of their own do", "[flow_network]") {
  for (const int n : {3, 7, 128}) {
    INFO("members " << n);
    const double weight = 1.0 / n;
    const Flow member{9, {{0, weight}, {1, weight}}};
    Flow all = member;
    all.members = n;
    const auto together = shared({10, 3}, {all, {4, {{0, 1}}}});
    std::vector<Flow> apart(static_cast<std::size_t>(n), member);
    apart.push_back({4, {{0, 1}}});
    const auto each = shared({10, 3}, apart);
    CHECK(each.front() == Approx(together.front()).epsilon(1e-12));
    CHECK(each.back() == Approx(together.back()).epsilon(1e-12));

    FlowNetwork network;
    network.add_link(BytesPerSecond(10));
    network.add_link(BytesPerSecond(3));
    const auto c = network.add_class(
        BytesPerSecond(9), std::array<FlowLoad, 2>{{{LinkId{0}, weight}, {LinkId{1}, weight}}});
    network.start(network.add_class(BytesPerSecond(4), std::array<FlowLoad, 1>{{{LinkId{0}}}}));
    for (int i = 0; i < n; ++i) network.start(c);
    network.share();
    CHECK(network.rate(c).value == together.front());
  }
}

namespace {

struct RandomNetwork {
  std::vector<double> capacities;
  std::vector<Flow> flows;
};

RandomNetwork random_network(std::mt19937& random) {
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  RandomNetwork made;
  const int links = number(1, 12);
  // Few different figures, so that ties between links are as common as in real machines.
  for (int i = 0; i < links; ++i) made.capacities.push_back(number(1, 8) * 12.5e9);
  const int flows = number(1, 25);
  for (int i = 0; i < flows; ++i) {
    Flow f;
    f.ceiling = number(0, 3) == 0 ? 1e15 : number(1, 20) * 5e9;
    f.members = number(0, 2) == 0 ? number(2, 9) : 1;
    for (int l = 0; l < links; ++l)
      if (number(0, 2) == 0) f.loads.emplace_back(static_cast<std::size_t>(l), number(1, 4) * 0.5);
    // A member alone must be able to reach its ceiling: that is what a ceiling means.
    for (const auto& [l, w] : f.loads) f.ceiling = std::min(f.ceiling, made.capacities[l] / w);
    if (f.loads.empty()) f.ceiling = std::min(f.ceiling, 1e12);
    made.flows.push_back(f);
  }
  return made;
}

// How much of each link is in use.
std::vector<double> usage(const RandomNetwork& n, const std::vector<double>& rates) {
  std::vector<double> used(n.capacities.size(), 0);
  for (std::size_t f = 0; f < n.flows.size(); ++f)
    for (const auto& [link, weight] : n.flows[f].loads)
      used[link] += weight * rates[f] * static_cast<double>(n.flows[f].members);
  return used;
}

}  // namespace

// The definition: rates are feasible, and every flow below its ceiling crosses a full link on which
// nobody is faster. Tolerances: loads are rounded to 2^-44 of a link, 5.7e-14 of it per member.
TEST_CASE("1,000 random networks are max-min fair", "[flow_network]") {
  std::mt19937 random(20240601);
  constexpr double tolerance = 1e-9;
  int limited = 0, at_ceiling = 0;
  for (int round = 0; round < 1000; ++round) {
    const RandomNetwork n = random_network(random);
    const std::vector<double> rates = shared(n.capacities, n.flows);
    const std::vector<double> used = usage(n, rates);
    INFO("network " << round);
    for (std::size_t l = 0; l < used.size(); ++l)
      REQUIRE(used[l] <= n.capacities[l] * (1 + tolerance));
    for (std::size_t f = 0; f < n.flows.size(); ++f) {
      REQUIRE(rates[f] > 0);
      REQUIRE(rates[f] <= n.flows[f].ceiling);
      if (rates[f] == n.flows[f].ceiling) {
        ++at_ceiling;
        continue;
      }
      ++limited;
      const auto fastest_on = [&](std::size_t link) {
        double fastest = 0;
        for (std::size_t g = 0; g < n.flows.size(); ++g)
          for (const auto& [l, w] : n.flows[g].loads)
            if (l == link) fastest = std::max(fastest, rates[g]);
        return fastest;
      };
      const auto& loads = n.flows[f].loads;
      const bool has_bottleneck = std::any_of(loads.begin(), loads.end(), [&](const auto& load) {
        const std::size_t l = load.first;
        return used[l] >= n.capacities[l] * (1 - tolerance) &&
               rates[f] >= fastest_on(l) * (1 - tolerance);
      });
      REQUIRE(has_bottleneck);
    }
  }
  // The test has seen both kinds.
  CHECK(limited > 1000);
  CHECK(at_ceiling > 1000);
}

// Rates depend on who is active, not on the order in which flows came and went.
TEST_CASE("the history of a network leaves no trace in its rates", "[flow_network]") {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const RandomNetwork n = random_network(random);
    const std::vector<double> fresh = shared(n.capacities, n.flows);
    FlowNetwork network;
    for (const double c : n.capacities) network.add_link(BytesPerSecond(c));
    std::vector<FlowClassId> classes;
    for (const Flow& f : n.flows) {
      std::vector<FlowLoad> loads;
      for (const auto& [link, weight] : f.loads)
        loads.push_back({LinkId{static_cast<std::uint32_t>(link)}, weight});
      classes.push_back(network.add_class(BytesPerSecond(f.ceiling), loads));
    }
    std::vector<std::size_t> order(classes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      network.start(classes[i], n.flows[i].members + 2);
      network.share();
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      network.stop(classes[i], 2);
      network.share();
    }
    for (std::size_t i = 0; i < classes.size(); ++i)
      REQUIRE(network.rate(classes[i]).value == fresh[i]);
  }
}
