// The same thing under the same key, whichever command tells it.
#include <algorithm>
#include <sstream>

#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/launch.hpp"
#include "planner/commands/models.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/shop.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/report/json_parts.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

template <class Run>
Json answer_of(Run run) {
  std::ostringstream out, err;
  const int code = run(Output{out, err, true});
  INFO(err.str());
  REQUIRE(code == 0);
  return Json::parse(out.str());
}

// What every one of `parts` has has to be the same. Each holds an answer about the same plan.
void agree(const std::vector<Json>& parts, const std::vector<const char*>& keys) {
  for (const char* key : keys)
    for (const Json& part : parts) {
      INFO(key);
      REQUIRE(part.contains(key));
      CHECK(part[key] == parts.front()[key]);
    }
}

}  // namespace

TEST_CASE("fit, plan, simulate and compare tell the same of one plan, in one shape", "[shape]") {
  const Facts& facts = known_facts();
  Request r = request_for("gpt2", "2xA100-80GB", {Method::pretrain});
  r.batch = 16;
  r.top = 1;
  const Json found = answer_of([&](const Output& o) { return plan(r, {}, facts, o); })["plans"][0];
  r.top.reset();
  r.plans = {found["plan"]};
  const Json fitted =
      answer_of([&](const Output& o) { return fit(r, facts, false, o); })["answers"][0];
  const Json simulated = answer_of([&](const Output& o) { return simulate(r, facts, {}, o); });
  const Json compared =
      answer_of([&](const Output& o) { return compare(r, facts, false, o); })["plans"][0];
  agree({simulated, found, fitted, compared},
        {"plan", "settings", "verdict", "step_time_s", "tokens_per_s", "host_ram_gib",
         "host_ram_training_gib", "host_ram_loading_gib", "peak_memory_high_gib", "trust"});
  agree({fitted, found, compared}, {"peak_memory_gib", "capacity_gib", "margin_gib"});
  agree({simulated, compared}, {"framework", "breakdown_s", "mfu", "bubble_fraction"});
  agree({simulated, fitted, compared}, {"framework"});

  const Json& worst = simulated["stages"][simulated["worst_stage"].get<std::size_t>()];
  CHECK(worst["peak_memory_gib"] == found["peak_memory_gib"]);
  // The most that training or loading takes; the interval's end lies above what is expected.
  CHECK(simulated["host_ram_gib"].get<double>() ==
        std::max(simulated["host_ram_training_gib"].get<double>(),
                 simulated["host_ram_loading_gib"].get<double>()));
  CHECK(simulated["peak_memory_high_gib"] > worst["peak_memory_gib"]["device"]);
  CHECK(simulated["breakdown_s"]["optimizer"] > 0);
  CHECK_FALSE(simulated["breakdown_s"]["compute"].contains("optimizer"));
}

TEST_CASE("a step's time is an interval wherever it stands", "[shape]") {
  const Facts& facts = known_facts();
  Request r = request_for("70b", "2xRTX-4090", {Method::qlora});
  const Json advised =
      answer_of([&](const Output& o) { return fit(r, facts, false, o); })["answers"][0]["advice"];
  Request small = request_for("smollm2-135m", "rtx-4090", {Method::lora});
  const Json rows = answer_of([&](const Output& o) { return models(small, facts, o); })["models"];
  small.gpus.reset();
  const Json shopped = answer_of([&](const Output& o) { return shop(small, facts, o); });
  REQUIRE_FALSE(advised.empty());
  for (const Json& one : {advised[0], rows[0]["answers"][0], shopped["offers"][0]}) {
    INFO(one.dump());
    const Json& step = one.at("step_time_s");
    CHECK((step["low"] <= step["expected"] && step["expected"] <= step["high"]));
  }
  CHECK(shopped["model"] == "smollm2-135m");
}

}  // namespace shardwise
