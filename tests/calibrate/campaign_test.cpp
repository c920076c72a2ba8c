#include "calibrate/measuring/campaign.hpp"

#include "calibrate/measuring/simulated_device.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

BenchPoint copy_of(std::int64_t mib) {
  BenchPoint point;
  point.bench = "copy";
  point.sizes = {{"bytes", mib << 20}};
  point.shrinks = "bytes";
  return point;
}

BenchPoint launch() {
  BenchPoint point;
  point.bench = "launch";
  return point;
}

Subject subject_of(const SimulatedGpu& gpu, BenchPlan plan, Seconds budget = Seconds(100)) {
  return {0, "GPU 0", simulated_device(gpu), std::move(plan), budget};
}

struct Told {
  std::vector<Progress> progress;
  int stop_after = 1'000'000;
  CampaignHands hands() {
    return {[this](const Progress& p) { progress.push_back(p); },
            [this] { return static_cast<int>(progress.size()) >= stop_after; }};
  }
};

std::vector<std::string> outcomes(const std::vector<Entry>& entries) {
  std::vector<std::string> out;
  for (const Entry& entry : entries)
    out.push_back(std::string(outcome_name(entry.finding.outcome)) + " " + identity(entry.point));
  return out;
}

}  // namespace

TEST_CASE("a plan is measured point by point, with progress after each") {
  const Subject subject = subject_of({}, {copy_of(1), copy_of(2), launch()});
  Told told;
  std::vector<Entry> entries;
  CHECK(run_campaign(subject, {}, told.hands(), entries) == CampaignEnd::complete);
  REQUIRE(entries.size() == 3);
  CHECK(entries[2].point.bench == "launch");
  REQUIRE(told.progress.size() == 3);
  CHECK(told.progress[0].done == 1);
  CHECK(told.progress[0].planned == 3);
  // One done, two left, as fast as the first: twice its time.
  CHECK(told.progress[0].remaining.value == Approx(2 * entries[0].finding.took.value));
  CHECK(told.progress[2].remaining == Seconds(0));
}

TEST_CASE("out of memory: the point is halved until it fits, larger ones are left out") {
  SimulatedGpu gpu;
  gpu.memory = Bytes(std::int64_t{64} << 20);  // a copy takes twice its size: 32 MiB fit
  const Subject subject = subject_of(gpu, {copy_of(128), copy_of(256), copy_of(16), launch()});
  Told told;
  std::vector<Entry> entries;
  CHECK(run_campaign(subject, {}, told.hands(), entries) == CampaignEnd::complete);
  const std::string mib128 = identity(copy_of(128)), mib64 = identity(copy_of(64));
  CHECK(outcomes(entries) == std::vector<std::string>{"out_of_memory " + mib128,
                                                      "out_of_memory " + mib64,
                                                      "measured " + identity(copy_of(32)),
                                                      "measured " + identity(copy_of(16)),
                                                      "measured " + identity(launch())});
}

TEST_CASE("a halved point that the plan has as well is measured once") {
  SimulatedGpu gpu;
  gpu.memory = Bytes(std::int64_t{64} << 20);
  const Subject subject = subject_of(gpu, {copy_of(64), copy_of(32)});
  Told told;
  std::vector<Entry> entries;
  run_campaign(subject, {}, told.hands(), entries);
  CHECK(outcomes(entries) == std::vector<std::string>{"out_of_memory " + identity(copy_of(64)),
                                                      "measured " + identity(copy_of(32))});
}

TEST_CASE("a bench that fails leaves the others alone, a GPU that is lost ends its campaign") {
  SimulatedGpu gpu;
  gpu.fails = "launch";
  Told told;
  std::vector<Entry> entries;
  CHECK(run_campaign(subject_of(gpu, {launch(), copy_of(1)}), {}, told.hands(), entries) ==
        CampaignEnd::complete);
  CHECK(entries[0].finding.outcome == Outcome::failed);
  CHECK(entries[1].finding.outcome == Outcome::measured);

  gpu.lost_after = 1;
  entries.clear();
  CHECK(run_campaign(subject_of(gpu, {copy_of(1), copy_of(2), copy_of(3)}), {}, told.hands(),
                     entries) == CampaignEnd::lost);
  REQUIRE(entries.size() == 2);
  CHECK(entries[1].finding.outcome == Outcome::lost);
}

TEST_CASE("a campaign keeps to its budget") {
  SimulatedGpu gpu;
  gpu.noise = 0.5;  // never known well: every point uses all of its share
  gpu.outliers = 0;
  gpu.slowed = 0;
  BenchPlan plan;
  for (int i = 1; i <= 20; ++i) plan.push_back(copy_of(1000 + i));
  MeasuringRules rules;
  rules.stopping.max_samples = 1'000'000;
  Told told;
  std::vector<Entry> entries;
  CHECK(run_campaign(subject_of(gpu, plan, Seconds(4)), rules, told.hands(), entries) ==
        CampaignEnd::complete);
  double sum = 0;
  for (const Entry& entry : entries) sum += entry.finding.took.value;
  // Each point goes over its share by one run (2.4 ms, up to three times that with noise) at most.
  CHECK(sum > 3.9);
  CHECK(sum < 4.01);
  // Equal shares: 4 s over 20 points.
  CHECK(entries[0].finding.took.value == Approx(0.2).margin(0.01));
  CHECK(entries[19].finding.took.value == Approx(0.2).margin(0.01));
}

TEST_CASE("weights give a point more of the time") {
  SimulatedGpu gpu;
  gpu.noise = 0.5;
  gpu.slowed = 0;
  BenchPlan plan{copy_of(1001), copy_of(1002)};
  plan[0].weight = 3;
  MeasuringRules rules;
  rules.stopping.max_samples = 1'000'000;
  Told told;
  std::vector<Entry> entries;
  run_campaign(subject_of(gpu, plan, Seconds(4)), rules, told.hands(), entries);
  CHECK(entries[0].finding.took.value == Approx(3).margin(0.02));
}

TEST_CASE("a budget too small for the plan ends it, and a larger one goes on") {
  SimulatedGpu gpu;
  gpu.preparation = Seconds(1);  // alone more than the share
  BenchPlan plan{copy_of(1), copy_of(2), copy_of(3), copy_of(4)};
  Told told;
  std::vector<Entry> entries;
  CHECK(run_campaign(subject_of(gpu, plan, Seconds(2)), {}, told.hands(), entries) ==
        CampaignEnd::out_of_time);
  CHECK(entries.size() == 2);
  CHECK(run_campaign(subject_of(gpu, plan, Seconds(20)), {}, told.hands(), entries) ==
        CampaignEnd::complete);
  CHECK(entries.size() == 4);
}

TEST_CASE("interrupted after any point and resumed, a campaign ends with the same entries") {
  SimulatedGpu gpu;
  gpu.memory = Bytes(std::int64_t{64} << 20);
  gpu.noise = 0.2;  // budgets matter: a point's share depends on the time used before
  gpu.slowed = 0;
  const BenchPlan plan{copy_of(20), copy_of(128), copy_of(30), launch(), copy_of(8), copy_of(4)};
  const auto lines = [&](const std::vector<Entry>& entries) {
    std::string text;
    for (const Entry& entry : entries) text += entry_line(entry) + "\n";
    return text;
  };
  Told whole;
  std::vector<Entry> expected;
  run_campaign(subject_of(gpu, plan, Seconds(0.3)), {}, whole.hands(), expected);
  REQUIRE(expected.size() == 8);
  for (int stop = 0; stop < 8; ++stop) {
    Told first;
    first.stop_after = stop;
    std::vector<Entry> entries;
    CHECK(run_campaign(subject_of(gpu, plan, Seconds(0.3)), {}, first.hands(), entries) ==
          CampaignEnd::interrupted);
    CHECK(entries.size() == static_cast<std::size_t>(stop));
    Told second;
    run_campaign(subject_of(gpu, plan, Seconds(0.3)), {}, second.hands(), entries);
    CHECK(lines(entries) == lines(expected));
  }
}
