// The same thing under the same key, whichever command tells it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "catalog/find.hpp"
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

// States of 16 bytes for each of 8.03 B parameters, 120 GiB, are more than four cards of 24 GiB
// have, but these lie in host RAM: what does not fit is what stays on the GPU.
TEST_CASE("states that are offloaded are not what does not fit", "[shape]") {
  Request r = request_for("8b", "4xRTX-3090", {Method::full});
  r.plans = {"dp=4,zero=3,mbs=4,recompute=none,offload=params+optimizer"};
  std::ostringstream text, errors;
  CHECK(fit(r, known_facts(), false, Output{text, errors}) == 0);
  CHECK(text.str().find("full     does not fit: needs at least ") != std::string::npos);
  r.plans = {"dp=4,zero=3,mbs=4,recompute=none"};
  std::ostringstream on_gpus;
  CHECK(fit(r, known_facts(), false, Output{on_gpus, errors}) == 0);
  CHECK(on_gpus.str().find("full     does not fit: model states alone are ") != std::string::npos);
}

// A screen is 20 offers; what is left out is counted, and JSON has it.
TEST_CASE("shop shows the cheapest offers, and counts the others", "[shape]") {
  Request r = request_for("smollm2-135m", "rtx-4090", {Method::lora});
  r.gpus.reset();
  const std::size_t all =
      answer_of([&](const Output& o) { return shop(r, known_facts(), o); })["offers"].size();
  REQUIRE(all > 20);
  std::ostringstream text, errors;
  Output plain{text, errors};
  CHECK(shop(r, known_facts(), plain) == 0);
  const std::string shown = text.str();
  int rows = 0;
  for (std::size_t at = shown.find(" an hour ("); at != std::string::npos;
       at = shown.find(" an hour (", at + 1))
    ++rows;
  for (std::size_t at = shown.find(" buy at $"); at != std::string::npos;
       at = shown.find(" buy at $", at + 1))
    ++rows;
  CHECK(rows == 20);
  CHECK(shown.find(std::to_string(all - 20) + " more run for more (--json lists all)") !=
        std::string::npos);
}

// 8 x 3090 shard what one 3090 cannot hold, and a LoRA runs in another framework than a full
// fine-tune: each line says in which, and the target that runs it.
TEST_CASE("an advice says in which framework it was forecast, and what starts it", "[shape]") {
  Request r = request_for("8b", "rtx-3090", {Method::full});
  const Json advice = answer_of(
      [&](const Output& o) { return fit(r, known_facts(), false, o); })["answers"][0]["advice"];
  REQUIRE_FALSE(advice.empty());
  int started = 0;
  for (const Json& one : advice) {
    INFO(one.dump());
    CHECK(find_framework(known_facts().catalog, one["framework"].get<std::string>()));
    if (one["framework"] == "accelerate-fsdp1") {
      ++started;
      CHECK(one["launch_targets"] == Json({"accelerate"}));
    }
  }
  std::ostringstream text, errors;
  CHECK(fit(r, known_facts(), false, Output{text, errors}) == 0);
  CHECK(text.str().find(" (--target ") != std::string::npos);
}

}  // namespace shardwise
