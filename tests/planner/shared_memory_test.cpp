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

// The same question on a card that offers so much.
StageForecast on_card(Question q, bool shares, Bytes memory) {
  Gpu& gpu = q.cluster.groups.front().gpu;
  gpu.shares_host_memory = shares;
  gpu.memory_offered = memory;
  const auto f = forecast(q, known_facts().profile);
  REQUIRE(f);
  return f->worst();
}

Question offloads_inputs() {
  Request request = request_for("llama-3.1-8b", "gb10", {Method::lora});
  request.framework = "trl";
  request.sequence = 4096;
  request.batch = 8;
  request.plans = {"dp=1,mbs=8,ga=1,recompute=full,offload=activations"};
  return spark_plan(request, true).question;
}

Question pages_states() {
  Request request = request_for("llama-3.2-1b", "gb10", {Method::full});
  request.optimizer = optimizer_named("paged-adamw");
  request.plans = {"dp=1,mbs=4,ga=2,recompute=none"};
  return spark_plan(request, true).question;
}

constexpr Bytes endless{1LL << 50};

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

// What the allocator cannot have leaves it a smaller card: beside a host with memory of its own it
// does on a card that is smaller by so much what it does here. Eight sequences' inputs of 32 layers
// are 8 GiB; a card with 1 GiB less than is taken of one without end is filled by the cache. Where
// streams are recorded the allocator waits for the GPU instead, long before.
TEST_CASE("the allocator fills what offloaded inputs leave of one memory") {
  Question q = offloads_inputs();
  for (const bool records : {false, true}) {
    q.workload.framework.process.records_streams = records;
    const StageForecast one = on_card(q, true, endless), two = on_card(q, false, endless);
    const Bytes moved = one.peak.device - two.peak.device;
    REQUIRE(moved >= Bytes(31LL << 28));
    CHECK(one.save.device == two.save.device);  // between steps nothing is on the host
    const Bytes tight = two.peak.device - Bytes(1LL << 30);
    const StageForecast fills = on_card(q, true, tight + moved), alike = on_card(q, false, tight);
    if (records)
      REQUIRE(alike.peak.reserved < two.peak.reserved);
    else
      REQUIRE(alike.peak.device == tight);
    CHECK(fills.peak.allocated == alike.peak.allocated);
    CHECK(fills.peak.reserved == alike.peak.reserved);
    CHECK(fills.peak.device == alike.peak.device + moved);
    CHECK(fills.needed == alike.needed + moved);
    CHECK(fills.save.device == alike.save.device);
    if (!records) CHECK(alike.cache_fills());
  }
}

// 8 bytes of each of Llama-3.2-1B's 1,235,814,400 parameters are paged. Of a card that is far too
// small it is told how much the least one has on which it would fit, and there it does, although
// one without end reserves more.
TEST_CASE("paged states in one memory are no room that the allocator's cache fills") {
  Question q = pages_states();
  const Bytes paged(8 * 1'235'814'400LL);
  const StageForecast endlessly = on_card(q, true, endless);
  const Bytes outside = endlessly.peak.device - endlessly.peak.reserved;
  CHECK(outside > paged);
  CHECK(endlessly.breakdown[static_cast<std::size_t>(MemoryCategory::optimizer_states)] ==
        paged.value);
  const Bytes least = on_card(q, true, endlessly.peak.allocated + outside - Bytes(1)).peak.device;
  REQUIRE(least < endlessly.peak.device);
  const StageForecast fits = on_card(q, true, least);
  CHECK(fits.peak.device <= least);
  CHECK(fits.peak.reserved == on_card(q, false, least - paged).peak.reserved);
}

}  // namespace shardwise
