// The 80 % intervals: which row counts, and quantiles derived by hand.
#include "planner/validation/spread_fit.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "catalog/cluster_parser.hpp"
#include "catalog/spread.hpp"
#include "planner/forecast/spread_key.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

SpreadSample spread_sample(const std::string& source, double ratio,
                           Extent extent = Extent::one_node) {
  return {source, SpreadKey{extent, false, Tuning::pretrain}, ratio};
}

// `runs` of `source` with ratios 1.01, 1.02, ...
void add_samples(std::vector<SpreadSample>& to, const std::string& source, int runs) {
  for (int i = 1; i <= runs; ++i) to.push_back(spread_sample(source, 1 + 0.01 * i));
}

TEST_CASE("The first row of a spread that holds counts") {
  const std::vector<SpreadRow> rows{{Extent::one_node, true, {}, true, {}, 0.95, 1.05, 1, 1},
                                    {Extent::one_node, true, {}, {}, {}, 0.9, 1.1, 1, 1},
                                    {Extent::one_node, {}, {}, {}, {}, 0.8, 1.2, 1, 1},
                                    {{}, {}, {}, {}, {}, 0.7, 1.3, 1, 1}};
  CHECK(spread_of(rows, {Extent::one_node, true, Tuning::full, true}).low == 0.95);
  CHECK(spread_of(rows, {Extent::one_node, true, Tuning::full}).low == 0.9);
  CHECK(spread_of(rows, {Extent::one_node, false, Tuning::full}).low == 0.8);
  CHECK(spread_of(rows, {Extent::one_gpu, false, Tuning::full}).low == 0.7);
  CHECK(spread_of({}, {}).high == 2);  // nothing known: half to twice
}

TEST_CASE("The extent of a run is that of its nodes") {
  const auto extent = [](const char* gpus, const char* plan) {
    const auto cluster = parse_gpus(known_facts().catalog, gpus);
    REQUIRE(cluster);
    return spread_key(Workload{}, *parse_plan(plan), cluster->front()).extent;
  };
  CHECK(extent("1xH100-SXM", "dp=1") == Extent::one_gpu);
  CHECK(extent("8xH100-SXM", "dp=8") == Extent::one_node);
  CHECK(extent("16xH100-SXM", "dp=16") == Extent::several_nodes);
  CHECK(extent("4 nodes of 2xH100-SXM", "dp=8") == Extent::several_nodes);
  CHECK(extent("2xRTX-3090+2xRTX-4090", "dp=4") == Extent::one_node);  // one box
}

// Two sources of 50 runs each, both 1.01 ... 1.50, so that every ratio is there twice with equal
// weight: a tenth of the weight is reached at the 10th of 100, the fifth value, 1.05; nine tenths
// at the 90th, the 45th value, 1.45.
TEST_CASE("Quantiles are taken over the runs of a kind") {
  std::vector<SpreadSample> samples;
  add_samples(samples, "a", 50);
  add_samples(samples, "b", 50);
  const auto rows = fit_step_spread(samples);
  const SpreadRow row = spread_of(rows, samples.front().key);
  CHECK(row.extent == Extent::one_node);
  CHECK(row.low == Approx(1.05));
  CHECK(row.high == Approx(1.45));
  CHECK(row.runs == 100);
  CHECK(row.sources == 2);
  // 4 below and 5 above on each side lie outside: (100 - 8 - 10) / 100.
  CHECK(spread_coverage(samples, fit_step_spread).in_sample == Approx(0.82));
  // Either source alone gives no row of its own kind (two sources are needed) but the common one,
  // whose quantiles are the same values.
  CHECK(spread_coverage(samples, fit_step_spread).left_out == Approx(0.82));
}

// 400 runs at 2 and 100 at 1, of two sources: by runs 80 % lie at 2, by square roots 20 : 10, so
// the tenth percentile is 1 and the weight below 2 is a third, not a fifth.
TEST_CASE("A large source weighs as the square root of its runs") {
  std::vector<SpreadSample> samples;
  for (int i = 0; i < 400; ++i) samples.push_back(spread_sample("large", 2));
  for (int i = 0; i < 100; ++i) samples.push_back(spread_sample("small", 1));
  for (int i = 0; i < 25; ++i) samples.push_back(spread_sample("least", 0.5));
  // Weights 20, 10 and 5 of 35: 3.5 is reached within "least", 31.5 within "large".
  const SpreadRow row = spread_of(fit_memory_spread(samples), samples.front().key);
  CHECK(row.low == Approx(0.5));
  CHECK(row.high == Approx(2));
}

// "huge" has 80 runs of two sources at 5, three families of 10 runs each lie at 1, 1.1 and 1.2. A
// framework that is none of them may be like any: "huge" has one vote, the others with half of 20
// runs have half a vote each. Of 2.5 votes a tenth is reached at 1, nine tenths at 5.
// Its own row: memory's says 5. Step time's has the coarser kinds in it with 20 runs to its 80, a
// fifth of the weight, of which 0.2 lie at 1, at 1.1 and at 1.2 each: 0.04, 0.08, 0.12, so that a
// tenth is reached at 1.2.
TEST_CASE("A family with enough runs has a row of its own, and one vote in the others") {
  std::vector<SpreadSample> samples;
  const auto add_family = [&](const std::string& family, const std::string& source, int runs,
                              double ratio) {
    SpreadSample s = spread_sample(source, ratio);
    s.key.framework = family;
    samples.insert(samples.end(), static_cast<std::size_t>(runs), s);
  };
  add_family("huge", "a", 40, 5);
  add_family("huge", "b", 40, 5);
  add_family("one", "c", 10, 1);
  add_family("two", "d", 10, 1.1);
  add_family("three", "e", 10, 1.2);
  for (const auto& [rows, low] :
       {std::pair{fit_step_spread(samples), 1.2}, std::pair{fit_memory_spread(samples), 5.0}}) {
    SpreadKey key = samples.front().key;
    CHECK(spread_of(rows, key).framework == std::string("huge"));
    CHECK(spread_of(rows, key).low == Approx(low));
    CHECK(spread_of(rows, key).high == Approx(5));
    CHECK(spread_of(rows, key).runs == 80);
    key.framework = "unheard of";
    CHECK_FALSE(spread_of(rows, key).framework);
    CHECK(spread_of(rows, key).low == Approx(1));
    CHECK(spread_of(rows, key).high == Approx(5));
    CHECK(spread_of(rows, key).runs == 110);
  }
}

// Step time needs five runs of a kind, memory 20.
TEST_CASE("Too few runs of a kind fall back to the coarser one") {
  const auto row = [](SpreadFit fit, int runs) {
    std::vector<SpreadSample> samples;
    add_samples(samples, "a", 30);
    add_samples(samples, "b", 30);
    for (int i = 0; i < runs; ++i) samples.push_back(spread_sample("a", 9, Extent::one_gpu));
    return spread_of(fit(samples), {Extent::one_gpu, false, {}});
  };
  CHECK_FALSE(row(fit_step_spread, 4).extent);
  CHECK(row(fit_step_spread, 4).runs == 64);
  CHECK(row(fit_step_spread, 5).extent == Extent::one_gpu);
  CHECK_FALSE(row(fit_memory_spread, 19).extent);
  CHECK(row(fit_memory_spread, 19).runs == 79);
}

// Ten runs of one GPU at 9 beside 60 of one node at 1.01 ... 1.30, each twice: 10 of 10 + 20 of the
// weight are at 9 for them alone (extent, tensor and pipeline). The two coarser kinds of one GPU
// hold the same ten and do not count them again. The rest, 2/3, is the row for everything, in which
// source "a" has 40 runs and "b" 30: sqrt(40) * 30 / 40 + sqrt(30) = 10.22 of 11.80 below 9.
// 2/3 * 10.22 / 11.80 = 0.577 lie below 9: a tenth is reached within the one node's runs, nine
// tenths at 9.
TEST_CASE("Few runs stand beside those of coarser kinds that hold others") {
  std::vector<SpreadSample> samples;
  add_samples(samples, "a", 30);
  add_samples(samples, "b", 30);
  for (int i = 0; i < 10; ++i) samples.push_back(spread_sample("a", 9, Extent::one_gpu));
  const SpreadRow row = spread_of(fit_step_spread(samples), {Extent::one_gpu, false, {}});
  CHECK(row.extent == Extent::one_gpu);
  CHECK(row.runs == 10);
  // 0.1 of 0.577 is 0.173 of those 30 values in order: the sixth.
  CHECK(row.low == Approx(1.06));
  CHECK(row.high == Approx(9));
}

TEST_CASE("The shipped spread is ordered and closes with a row for everything") {
  const auto spread = load_spread(source_dir() + "/catalog/profiles/spread.json");
  REQUIRE(spread);
  for (const auto* rows : {&spread->step_time, &spread->memory}) {
    const SpreadRow& last = rows->back();
    CHECK((!last.extent && !last.tensor && !last.tuning && !last.stages && !last.framework));
    const auto fields = [](const SpreadRow& r) {
      return r.extent.has_value() + r.tensor.has_value() + r.tuning.has_value() +
             r.stages.has_value() + r.framework.has_value();
    };
    CHECK(std::is_sorted(rows->begin(), rows->end(), [&](const SpreadRow& a, const SpreadRow& b) {
      return fields(a) > fields(b);
    }));
  }
}

}  // namespace
}  // namespace shardwise
