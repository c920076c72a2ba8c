// Errors told apart by the dimensions of a plan, and the lines that are drawn from them.
#include "planner/validation/residuals.hpp"

#include <algorithm>
#include <string>

#include "tests/catch.hpp"
#include "tests/planner/made_runs.hpp"

namespace shardwise {
namespace {

// A run of 1 s with a model of 7B parameters.
ReplayedRun& add_run(MadeRuns& made, const std::string& source, int sequence, double predicted) {
  ReplayedRun& run = made.add(source, 1, predicted);
  run.shape.sequence = sequence;
  run.shape.microbatch = 3;
  run.shape.parameters = 7'000'000'000;
  return run;
}

std::vector<Residual> of_dimension(const std::vector<Residual>& all, const std::string& dimension) {
  std::vector<Residual> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const Residual& r) { return r.dimension == dimension; });
  return out;
}

}  // namespace

// Classes double from 256 tokens on: 4,096 and 8,000 are one, 512 another and 100 below all.
TEST_CASE("Numbers come in classes and in order of size") {
  MadeRuns made;
  add_run(made, "a", 8000, 1.3);
  add_run(made, "a", 512, 0.9);
  add_run(made, "a", 100, 1);
  add_run(made, "a", 4096, 1.1);
  const std::vector<ScoreRow> rows = score_rows(made.replayed, ScoreBy::sequence);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].key.name == "0 to 255");
  CHECK(rows[1].key.name == "512 to 1,023");
  CHECK(rows[2].key.name == "4,096 to 8,191");
  CHECK(rows[2].time.count == 2);
  CHECK(rows[2].time.bias == Approx(0.2));  // median of 0.1 and 0.3
  CHECK(score_rows(made.replayed, ScoreBy::size).front().key.name == "5B to 10B");
  CHECK(score_rows(made.replayed, ScoreBy::microbatch).front().key.name == "2 to 3");
}

// Two sources at 4,096 tokens, one of them at 512 too: three residuals in two places.
TEST_CASE("Sources stay apart in residuals") {
  MadeRuns made;
  add_run(made, "a", 4096, 1.2);
  add_run(made, "b", 4096, 0.7);
  add_run(made, "b", 512, 0.8);
  add_run(made, "b", 4096, 1).skipped = Skipped{"not asked", ""};
  const auto all = residuals(made.replayed);
  const auto sequence = of_dimension(all, "sequence");
  REQUIRE(sequence.size() == 3);
  CHECK(sequence[0].source == "b");
  CHECK(sequence[1].time.bias == Approx(0.2));
  CHECK(sequence[2].time.count == 1);
  CHECK(sequence[2].time.bias == Approx(-0.3));
  CHECK(of_dimension(all, "source").empty());
  const std::string lines = residual_lines(sequence);
  CHECK(lines ==
        "dimension\tplace\trow\tsource\tfigure\truns\tbias\tmedian\n"
        "sequence\t1\t512 to 1,023\tb\ttime\t1\t-20.0\t20.0\n"
        "sequence\t2\t4,096 to 8,191\ta\ttime\t1\t20.0\t20.0\n"
        "sequence\t2\t4,096 to 8,191\tb\ttime\t1\t-30.0\t30.0\n");
}

}  // namespace shardwise
