// A machine whose CPU and GPU have one memory (DGX Spark) has nowhere to offload to.
#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// On the card as it is, or on one like it beside a host with memory of its own.
ChosenPlan spark_plan(const Request& request, bool shares) {
  ResolvedRequest r = resolved(request);
  Gpu& gpu = r.clusters.front().groups.front().gpu;
  REQUIRE(gpu.shares_host_memory);
  gpu.shares_host_memory = shares;
  auto plan = choose_plan(r, r.methods.front(), r.clusters.front());
  REQUIRE(plan);
  return *std::move(plan);
}

}  // namespace

// Llama-3.1-8B's 32 layers each have an input of 2 x 4,096 tokens of 4,096 values in 16 bits, which
// is 64 MiB, and Unsloth moves them to the host: all of them, or all but the last one at once.
TEST_CASE("layers' inputs that are offloaded stay in the one memory") {
  Request request = request_for("llama-3.1-8b", "gb10", {Method::qlora});
  request.framework = "unsloth";
  request.sequence = 4096;
  request.batch = 2;
  request.plans = {"dp=1,mbs=2,ga=1,recompute=full"};
  const Forecast one = spark_plan(request, true).forecast;
  const Forecast two = spark_plan(request, false).forecast;
  const Bytes moved = two.host.steady - one.host.steady;
  CHECK(moved >= Bytes(31LL << 26));
  CHECK(moved <= Bytes(32LL << 26));
  CHECK(one.worst().peak.device - two.worst().peak.device == moved);
  CHECK(two.margin - one.margin == moved);
}

// Qwen2.5-14B has 14.8 billion parameters: 8 bytes of each are states that are paged, 119 GB, and
// weights and gradients in 16 bits take 59 GB. The card offers 128 GB (119 GiB).
TEST_CASE("a paged optimizer's states have no other memory to go to") {
  Request request = request_for("qwen2.5-14b", "gb10", {Method::full});
  request.optimizer = optimizer_named("paged-adamw");
  request.plans = {"dp=1,mbs=1,ga=16,recompute=full"};
  const ChosenPlan one = spark_plan(request, true);
  CHECK(one.verdict == Verdict::does_not_fit);
  CHECK(one.forecast.worst().paged_out == Bytes(0));
  CHECK(one.forecast.worst().peak.device > Bytes(178'000'000'000));
  const ChosenPlan two = spark_plan(request, false);
  CHECK(two.verdict != Verdict::does_not_fit);
  CHECK(two.forecast.worst().paged_out > Bytes(40'000'000'000));
}

}  // namespace shardwise
