// How the errors of a validation are counted, on runs made up for it.
#include "planner/validation/score.hpp"

#include <string>

#include "planner/validation/report.hpp"
#include "tests/catch.hpp"
#include "tests/planner/made_runs.hpp"

namespace shardwise {
// Errors -0.5, -0.1, 0.1, 0.3: bias 0; sizes 0.1, 0.1, 0.3, 0.5: median 0.2, mean 0.25; the value
// at index floor(0.9 x 4) = 3 is 0.5.
TEST_CASE("Bias, median and 90th percentile of errors") {
  const ErrorStatistics e = error_statistics({0.3, -0.5, 0.1, -0.1});
  CHECK(e.count == 4);
  CHECK(e.bias == Approx(0).margin(1e-12));
  CHECK(e.median == Approx(0.2));
  CHECK(e.mean == Approx(0.25));
  CHECK(e.p90 == Approx(0.5));
  CHECK(error_statistics({}).count == 0);
  CHECK(error_statistics({-0.25}).bias == Approx(-0.25));
}

// Source a: errors 0.1, 0.2, 0.3 (median 0.2); b: 0.5 three times; c: two runs only, left out.
TEST_CASE("Sources weigh the same") {
  MadeRuns made;
  for (const double p : {1.1, 1.2, 1.3}) made.add("a", 1, p);
  for (int i = 0; i < 3; ++i) made.add("b", 1, 1.5);
  for (int i = 0; i < 2; ++i) made.add("c", 1, 3);
  const ValidationScore s = score(made.replayed);
  REQUIRE(s.rows.size() == 3);
  CHECK(s.rows[0].key.name == "a");
  CHECK(s.rows[0].time.median == Approx(0.2));
  CHECK(s.time_over_sources.sources == 2);
  CHECK(s.time_over_sources.median == Approx((0.2 + 0.5) / 2));  // of a and b
  CHECK(s.time_over_sources.worst == Approx(0.5));
  CHECK(s.time.count == 8);
  CHECK(s.time.median == Approx(0.5));  // of 0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 2, 2
  CHECK(s.memory.count == 0);
}

// Two of three measurements of 1 s lie within 0.9 and 1.1 of what is expected.
TEST_CASE("Coverage counts the measurements between low and high") {
  MadeRuns made;
  for (const double p : {1.0, 1.05, 1.5}) made.add("a", 1, p);
  CHECK(score(made.replayed).time_coverage == Approx(2.0 / 3));
}

TEST_CASE("Suspect figures are not scored") {
  MadeRuns made;
  made.add("a", 1, 2);
  made.records.front().measured.time_suspect = true;
  CHECK(score(made.replayed).time.count == 0);
}

TEST_CASE("Running out of memory is confused in two ways") {
  MadeRuns made;
  const auto add = [&](const char* measured, Outcome predicted, bool suspect = false) {
    made.add("a", 1, 1).outcome = predicted;
    made.records.back().measured.outcome = measured;
    made.records.back().measured.oom_suspect = suspect;
  };
  add("oom", Outcome::ran);
  add("oom", Outcome::oom);
  add("oom", Outcome::ran, true);  // perhaps no capacity fact
  add("ran", Outcome::oom);
  add("ran", Outcome::ran);
  add("crashed-or-oom", Outcome::oom);
  add("crashed-or-oom", Outcome::ran);  // proves nothing
  const OutcomeScore o = score(made.replayed).outcome;
  CHECK(o.oom == 2);
  CHECK(o.false_fits == 1);
  CHECK(o.ran == 2);
  CHECK(o.false_refusals == 1);
  CHECK(o.crashed == 2);
  CHECK(o.confirmed == 1);
}

// Four plans measured at 1, 2, 3 and 4 s. Forecast in the order 2, 1, 3, 4: one pair of six is
// swapped, so tau is (5 - 1) / 6; the plan forecast fastest takes 2 s, twice the best.
TEST_CASE("Ranking within a group that differs in plan only") {
  MadeRuns made;
  const double predicted[] = {2, 1, 3, 4};
  for (int i = 0; i < 4; ++i) made.add("a", i + 1, predicted[i]).shape.microbatch = 1 << i;
  const RankingScore r = score(made.replayed).ranking;
  CHECK(r.groups == 1);
  CHECK(r.regret_median == Approx(1.0));
  REQUIRE(r.tau);
  CHECK(*r.tau == Approx(4.0 / 6));
  made.replayed.pop_back();
  CHECK(score(made.replayed).ranking.groups == 0);
}

// The plan of microbatch 2 ran three times, in 2, 9 and 2 s: it is one plan of 2 s. That of another
// optimizer differs in more than its plan, so three plans are left until a fourth comes.
TEST_CASE("Runs of one plan are one, and of another question none of a group") {
  MadeRuns made;
  for (const double measured : {2.0, 9.0, 2.0}) made.add("a", measured, 2).shape.microbatch = 2;
  made.add("a", 1, 1).shape.microbatch = 1;
  made.add("a", 4, 4).shape.microbatch = 4;
  made.add("a", 3, 3).shape.microbatch = 8;
  made.records.back().training.optimizer = "sgd";
  CHECK(score(made.replayed).plan_ranking.groups == 0);
  made.add("a", 3, 3);
  made.records.back().training.recompute = "full";
  const RankingScore r = score(made.replayed).plan_ranking;
  REQUIRE(r.each.size() == 1);
  CHECK(r.each.front().runs == 6);
  CHECK(r.each.front().plans == 4);
  CHECK(*r.tau == Approx(1.0));
  // Taken by size alone the six runs and the other optimizer's are one group of seven.
  REQUIRE(score(made.replayed).ranking.each.size() == 1);
  CHECK(score(made.replayed).ranking.each.front().plans == 7);
}

TEST_CASE("Skips are counted by reason and named in the report") {
  MadeRuns made;
  made.add("a", 1, 1);
  made.add("a", 1, 1).skipped = Skipped{"no batch size", ""};
  const ValidationScore s = score(made.replayed);
  CHECK(s.records == 2);
  CHECK(s.answered == 1);
  CHECK(s.skipped.at("no batch size") == 1);
  const std::string report = validation_report(s, "source");
  CHECK(report.find("1 of 2 records (50.0 %)") != std::string::npos);
  CHECK(report.find("no batch size") != std::string::npos);
  CHECK(validation_notes(made.replayed).find("a1: skipped: no batch size") != std::string::npos);
}

TEST_CASE("The table's rows can be something else than sources") {
  MadeRuns made;
  made.add("a", 1, 1).framework = "x";
  made.add("b", 1, 1).framework = "x";
  REQUIRE(score_by_named("framework"));
  CHECK_FALSE(score_by_named("weather"));
  const ValidationScore s = score(made.replayed, *score_by_named("framework"));
  REQUIRE(s.rows.size() == 1);
  CHECK(s.rows.front().key.name == "x");
  CHECK(s.rows.front().time.count == 2);
}

// One run each, and one of which no step is forecast.
TEST_CASE("Runs are told apart by what most of their step waits for") {
  MadeRuns made;
  for (const BoundKind kind : {BoundKind::compute, BoundKind::link}) {
    StepBound bound;
    bound.kind = kind;
    made.add("a", 1, 1).bound = bound;
  }
  made.add("a", 1, 1);
  const ValidationScore s = score(made.replayed, *score_by_named("bound"));
  REQUIRE(s.rows.size() == 3);
  CHECK(s.rows[0].key.name == "compute");
  CHECK(s.rows[1].key.name == "link");
  CHECK(s.rows[2].key.name == "no step time");
}

}  // namespace shardwise
