#include "planner/left_out.hpp"

#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// A run whose step time is proportional to 1 / constant: a tenth more takes 1 / 1.1 of the time.
SteppedRun inverse(const char* source, double measured, double here) {
  return {source, measured, here * 1.1, here, here / 1.1};
}

}  // namespace

TEST_CASE("a step time follows a constant by its exponent", "[left_out]") {
  const SteppedRun run = inverse("a", 2, 1);
  CHECK(follows(run).down == Approx(-1));
  CHECK(follows(run).up == Approx(-1));
  CHECK(step_at(run, 0.5) == Approx(2));  // half the constant, twice the time
  CHECK(step_at(run, 1) == Approx(1));
}

// Source a is measured at 2 for a forecast of 1: its best factor is 1/2. b needs 1, c 4/5, and d,
// which does not follow the constant, has no say. The median of 0.5, 0.8 and 1 is 0.8; without a
// it is the mean of 0.8 and 1.
TEST_CASE("the constant is the median of what its sources want", "[left_out]") {
  std::vector<SteppedRun> runs{
      inverse("a", 2, 1), inverse("b", 1, 1), inverse("c", 1.25, 1), {"d", 7, 1, 1, 1}};
  CHECK(best_factor(runs, {"a", "b", "c", "d"}) == Approx(0.8));
  CHECK(best_factor(runs, {"b", "c", "d"}) == Approx(0.9));
  CHECK(best_factor(runs, {"d"}) == 1);
}

TEST_CASE("every constant that says it was fitted is found, with its value", "[left_out]") {
  const Catalog& catalog = known_facts().catalog;
  const Profile& profile = known_facts().profile;
  std::size_t loads = 0, fields = profile.host.fitted.size();
  for (const FamilyCalibration& f : profile.families)
    if (!f.training_load.fitted_on.empty()) ++loads;
  for (const Framework& f : catalog.frameworks) fields += f.fitted.size();
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
