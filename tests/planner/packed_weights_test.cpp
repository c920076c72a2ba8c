// Frozen weights that FSDP and ZeRO-3 leave whole: every command says that it forecasts otherwise.
#include "simulator/packed_weights.hpp"

#include <algorithm>
#include <sstream>

#include "planner/advice/why_not.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Request packed_request(std::vector<std::string> plans, const std::string& gpus = "2x4090") {
  Request request = request_for("llama-3.2-1b", gpus, {Method::qlora});
  request.framework = "fsdp_qlora";
  request.quantization = Quantization::gptq;
  request.sequence = 512;
  request.batch = 8;
  request.plans = std::move(plans);
  return request;
}

// How often what `run` prints, as text or as JSON, speaks of buffers.
template <class Run>
int times_said(Run run, bool json) {
  std::ostringstream out, err;
  const Output output{out, err, json};
  REQUIRE(run(output) == 0);
  const std::string text = out.str(), words = "weights are buffers";
  int times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++times;
  return times;
}

Workload packed_workload() {
  const ResolvedRequest r = resolved(packed_request({}));
  return choose_workload(r, Method::qlora, r.clusters.front(), 3).workload;
}

}  // namespace

TEST_CASE("every command that forecasts shards of packed weights says so once") {
  const Facts& facts = known_facts();
  const Request sharded = packed_request({"dp=2,zero=3,mbs=1"});
  const Request two = packed_request({"dp=2,zero=3,mbs=1", "dp=2,zero=3,mbs=2", "dp=2,zero=0"});
  const Request whole = packed_request({"dp=2,zero=0"});
  for (const bool json : {false, true}) {
    INFO(json);
    const auto fits = [&](const Request& r) {
      return times_said([&](const Output& o) { return fit(r, facts, false, o); }, json);
    };
    const auto simulated = [&](const Request& r) {
      return times_said([&](const Output& o) { return simulate(r, facts, {}, o); }, json);
    };
    const auto compared = [&](const Request& r) {
      return times_said([&](const Output& o) { return compare(r, facts, false, o); }, json);
    };
    CHECK(fits(sharded) == 1);
    CHECK(simulated(sharded) == 1);
    CHECK(compared(two) == 1);
    CHECK(fits(whole) + simulated(whole) + compared(whole) == 0);
  }
}

TEST_CASE("a plan that shards packed weights is held against another with that said") {
  const ResolvedRequest r = resolved(packed_request({"dp=2,zero=0"}));
  const auto chosen = choose_plan(r, Method::qlora, r.clusters.front());
  REQUIRE(chosen);
  const WhyNot w =
      why_not(r, {chosen->question, chosen->forecast, chosen->verdict}, "dp=2,zero=3,mbs=1");
  REQUIRE(w.verdict);
  CHECK(std::count_if(w.reasons.begin(), w.reasons.end(), [](const std::string& reason) {
          return reason.find("buffers") != std::string::npos;
        }) == 1);
}

// FSDP's stage 2 (SHARD_GRAD_OP) parts the weights between steps as well; DeepSpeed's does not.
TEST_CASE("packed weights stay whole where a plan parts them among ranks or moves them") {
  Workload w = packed_workload();
  const auto stays_whole = [&](const char* plan) {
    return !why_frozen_stay_whole(w, *parse_plan(plan)).empty();
  };
  REQUIRE(w.framework.sharding.stage_2_gathers);
  CHECK(stays_whole("dp=2,zero=3"));
  CHECK(stays_whole("dp=2,zero=2"));
  CHECK(stays_whole("dp=1,cp=2,zero=3"));
  CHECK(stays_whole("dp=1,zero=3,offload=params"));
  CHECK_FALSE(stays_whole("dp=2,zero=0"));
  CHECK_FALSE(stays_whole("dp=1,zero=3"));
  CHECK_FALSE(stays_whole("dp=1,zero=3,offload=optimizer"));
  w.framework.sharding.stage_2_gathers = false;
  CHECK(stays_whole("dp=2,zero=3"));
  CHECK_FALSE(stays_whole("dp=2,zero=2"));
}

TEST_CASE("one GPU that says zero=3 to offload its optimizer is not refused for packed weights") {
  const ResolvedRequest r = resolved(packed_request({}, "4090"));
  const Workload w = packed_workload();
  const LaunchTarget& target = *launch_target_named("deepspeed");
  const auto refused = [&](const char* plan) {
    const auto reasons = plan_refusals(target, {w, *parse_plan(plan), r.clusters.front()});
    return std::any_of(reasons.begin(), reasons.end(), [](const std::string& reason) {
      return reason.find("buffers") != std::string::npos;
    });
  };
  CHECK_FALSE(refused("dp=1,zero=3,offload=optimizer"));
  CHECK(refused("dp=1,zero=3,offload=params+optimizer"));
}

}  // namespace shardwise
