// --require-fit: exit code 3 where nothing fits, which is else an answer like any other.
#include <sstream>

#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct Codes {
  int fit, simulate, compare, schedules, plan;
  friend bool operator==(const Codes&, const Codes&) = default;
};

// Of a model on two GPUs. `plan` finds its plans itself.
Codes codes(const char* model, const char* gpus, bool require_fit) {
  std::ostringstream out, err;
  const Output output{out, err, true};
  Request r = request_for(model, gpus, {Method::pretrain});
  r.batch = 16;
  PlanOptions planning;
  planning.require_fit = require_fit;
  SimulateOptions simulation;
  simulation.require_fit = require_fit;
  Codes c{};
  c.fit = fit(r, known_facts(), require_fit, output);
  c.plan = plan(r, planning, known_facts(), output);
  r.plans = {"pp=2"};
  c.simulate = simulate(r, known_facts(), simulation, output);
  r.schedules = true;
  c.schedules = compare(r, known_facts(), require_fit, output);
  r.schedules = false;
  r.plans.push_back("pp=1,dp=2,zero=0");
  c.compare = compare(r, known_facts(), require_fit, output);
  INFO(err.str());
  return c;
}

}  // namespace

TEST_CASE("a fit that is required and not there is exit code 3 of every command that judges") {
  // Weights take some 16 bytes each while they train: 124 M of them 2 GB, 70 B over a terabyte.
  CHECK((codes("gpt2", "2xRTX-4090", true) == Codes{0, 0, 0, 0, 0}));
  CHECK((codes("70b", "2xRTX-4090", true) == Codes{3, 3, 3, 3, 3}));
  CHECK((codes("70b", "2xRTX-4090", false) == Codes{0, 0, 0, 0, 0}));
}

}  // namespace shardwise
