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

TEST_CASE("a comparison in which nothing fits says where to go on") {
  const auto told = [](const char* model) {
    std::ostringstream out, err;
    Request r = request_for(model, "2xRTX-4090", {Method::pretrain});
    r.plans = {"dp=2", "pp=2", "tp=3"};  // the last cannot run, which is no fit either
    REQUIRE(compare(r, known_facts(), false, {out, err, false}) == 0);
    return out.str().find("None of these fits: shardwise fit says") != std::string::npos;
  };
  CHECK(told("70b"));
  CHECK_FALSE(told("gpt2"));
}

// What one GPU does not do is no waiting for another.
TEST_CASE("one GPU waits for no other") {
  std::ostringstream out, err;
  Request r = request_for("8b", "4090", {Method::full});
  r.framework = "hf-deepspeed";
  r.plans = {"zero=2,offload=optimizer,nvme=true"};
  REQUIRE(simulate(r, known_facts(), {}, {out, err, false}) == 0);
  CHECK(out.str().find("another GPU") == std::string::npos);
  // fp32 weights and two moments of 8.03 G parameters: 12 bytes each are 89.7 GiB.
  CHECK(out.str().find("on its drives: 89.7 GiB of optimizer states") != std::string::npos);
}

}  // namespace shardwise
