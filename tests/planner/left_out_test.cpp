#include "planner/validation/left_out.hpp"

#include <cmath>
#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// A run whose step time is proportional to 1 / constant: a tenth more takes 1 / 1.1 of the time.
SteppedRun inverse(const char* source, double measured, double here) {
  return {source, measured, here * 1.1, here, here / 1.1};
}

std::vector<SteppedRun> three_of(const SteppedRun& run) { return {run, run, run}; }

void add_runs(std::vector<SteppedRun>& to, const std::vector<SteppedRun>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("a step time follows a constant by its exponent", "[left_out]") {
  const SteppedRun run = inverse("a", 2, 1);
  CHECK(follows(run).down == Approx(-1));
  CHECK(follows(run).up == Approx(-1));
  CHECK(step_at(run, 0.5) == Approx(2));  // half the constant, twice the time
  CHECK(step_at(run, 1) == Approx(1));
}

// Sources a, b and c are measured at 1.25, 1 and 1 / 1.25 for a forecast of 1: they want 4/5, 1
// and 5/4, whose logarithms lie evenly about 0. d does not follow the constant, and e has two runs.
TEST_CASE("a constant is the location of what its sources want", "[left_out]") {
  std::vector<SteppedRun> runs{inverse("e", 2, 1), inverse("e", 2, 1)};
  add_runs(runs, three_of(inverse("a", 1.25, 1)));
  add_runs(runs, three_of(inverse("b", 1, 1)));
  add_runs(runs, three_of(inverse("c", 0.8, 1)));
  add_runs(runs, three_of({"d", 7, 1, 1, 1}));
  CHECK(best_factor(runs, {"a", "b", "c", "d", "e"}) == Approx(1));
  CHECK(best_factor(runs, {"a"}) == Approx(0.8));
  CHECK(best_factor(runs, {"d", "e"}) == 1);
}

// Logarithms -0.02, 0, 0 and 0.02 and a wild ln(1/2) = -0.69. The median of |value - 0| over all
// five is 0.02, so what lies beyond 4.685 x 1.4826 x 0.02 = 0.14 weighs nothing: 0 is left.
TEST_CASE("a source that is wildly off does not move a constant", "[left_out]") {
  std::vector<SteppedRun> runs;
  const char* names[] = {"a", "b", "c", "d", "wild"};
  const double factors[] = {std::exp(-0.02), 1, 1, std::exp(0.02), 0.5};
  for (std::size_t i = 0; i < 5; ++i)
    add_runs(runs, three_of(inverse(names[i], 1 / factors[i], 1)));
  CHECK(best_factor(runs, {"a", "b", "c", "d", "wild"}) == Approx(1));
}

// Between nodes source a took three times as long as its network was thought to; within its node it
// wants 4/5. b has no run within a node and wants 1/2, c one that wants 1 and two over nodes that
// want 1/2: their median is 1/2.
TEST_CASE("runs over nodes speak for a constant only where a source has too few others",
          "[left_out]") {
  std::vector<SteppedRun> runs = three_of(inverse("a", 1.25, 1));
  add_runs(runs, three_of(inverse("a", 3, 1)));
  add_runs(runs, three_of(inverse("b", 2, 1)));
  for (std::size_t i = 3; i < runs.size(); ++i) runs[i].in_one_node = false;
  runs.push_back(inverse("c", 1, 1));
  runs.push_back(runs[6]);
  runs.push_back(runs[6]);
  runs[10].source = runs[11].source = "c";
  CHECK(best_factor(runs, {"a"}) == Approx(0.8));
  CHECK(best_factor(runs, {"b"}) == Approx(0.5));
  CHECK(best_factor(runs, {"c"}) == Approx(0.5));
}

TEST_CASE("every constant that says it was fitted is found, with its value", "[left_out]") {
  const Catalog& catalog = known_facts().catalog;
  const Profile& profile = known_facts().profile;
  std::size_t loads = 0, fields = profile.host.fitted.size();
  std::set<std::string> families;  // rows of one code base have a constant between them
  for (const FamilyCalibration& f : profile.families)
    if (!f.training_load.fitted_on.empty()) ++loads;
  for (const Framework& f : catalog.frameworks)
    if (!f.fitted.empty()) families.insert(f.family.empty() ? f.id : f.family);
  fields += families.size();
  const auto constants = fitted_constants(catalog, profile);
  CHECK(constants.size() == loads + fields);  // a field that nothing sets would be missing
  for (const FittedConstant& c : constants) {
    INFO(c.name);
    CHECK(c.value > 0);
    Catalog other = catalog;
    Profile changed = profile;
    c.set(other, changed, c.value / 2);  // it sets what it read
    bool found = false;
    for (const FittedConstant& d : fitted_constants(other, changed))
      if (d.name == c.name) found = d.value == Approx(c.value / 2);
    CHECK(found);
  }
}

}  // namespace shardwise
