// Forecasts of boxes whose cards or nodes differ: time, host memory and trust.
#include <cstdint>

#include "planner/forecast/forecast.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/small_questions.hpp"

namespace shardwise {
namespace {

Forecast with_plan(const char* gpus, const char* framework, const char* plan) {
  return forecast_of(short_question("llama-3.2-1b", gpus, Method::full, framework, plan));
}

Seconds per_step(const char* gpus, const char* plan) {
  return with_plan(gpus, "pytorch-ddp", plan).step_time.expected;
}

}  // namespace

// The faster card of a mixed box runs more microbatches: the step is shorter than with equal
// shares, and longer than if all cards were of the faster kind.
TEST_CASE("a batch split by speed is faster on unequal GPUs", "[forecast]") {
  const char* box = "1xRTX-4090+2xRTX-3090";
  const Seconds even = per_step(box, "dp=3,zero=0,mbs=1,ga=8,recompute=full");
  const Seconds by_speed = per_step(box, "dp=3,zero=0,mbs=1,ga=8,balance=speed,recompute=full");
  CHECK(by_speed < even);
  CHECK(by_speed > per_step("3xRTX-4090", "dp=3,zero=0,mbs=1,ga=8,recompute=full"));
  // Equal GPUs have nothing to balance.
  CHECK(per_step("3xRTX-3090", "dp=3,zero=0,mbs=1,ga=8,balance=speed,recompute=full") ==
        per_step("3xRTX-3090", "dp=3,zero=0,mbs=1,ga=8,recompute=full"));
}

TEST_CASE("the slowest GPU of a mixed box is named", "[forecast]") {
  const Forecast f =
      with_plan("1xRTX-4090+2xRTX-3090", "pytorch-ddp", "dp=3,zero=0,mbs=1,ga=1,recompute=full");
  REQUIRE(f.slowest);
  CHECK(f.slowest->rank == 1);
  CHECK(f.slowest->gpu.find("3090") != std::string::npos);
  CHECK_FALSE(with_plan("3xRTX-3090", "pytorch-ddp", "dp=3,mbs=1,ga=1,recompute=full").slowest);
}

TEST_CASE("the host's memory is that of the fullest node, whichever is named first", "[forecast]") {
  const auto host = [](const char* gpus, const char* plan) {
    return forecast_of(short_question("llama-3.2-1b", gpus, Method::full, "pytorch-fsdp2", plan))
        .host.steady;
  };
  constexpr const char* four = "dp=4,zero=3,mbs=1,ga=1,recompute=full,offload=params+optimizer";
  // Four ranks in one box hold as much whatever their cards.
  const Bytes alike = host("4xRTX-4090", four);
  CHECK(host("2xRTX-3090+2xRTX-4090", four) == alike);
  CHECK(host("1xRTX-3090+3xRTX-4090", four) == alike);
  CHECK(host("3xRTX-4090+1xRTX-3090", four) == alike);
  // A node of one rank beside one of eight: the eight count.
  constexpr const char* nine = "dp=9,zero=3,mbs=1,ga=1,recompute=full,offload=params+optimizer";
  const Bytes mixed = host("1xH100-SXM+8xA100-80GB", nine);
  CHECK(mixed == host("8xA100-80GB+1xH100-SXM", nine));
  // Each of nine nodes of one rank holds what that rank holds: an eighth.
  CHECK(mixed == std::int64_t{8} * host("9 nodes of 1xA100-80GB", nine));
}

TEST_CASE("a forecast is as sure as the least known of its cards", "[forecast]") {
  const auto trust = [](const char* gpus) {
    return forecast_of(short_question("gpt2", gpus, Method::full, "pytorch-ddp",
                                      "dp=2,mbs=1,ga=1,recompute=none"))
        .trust;
  };
  CHECK(trust("1xV100-32GB+1xRTX-3090") == trust("1xRTX-3090+1xV100-32GB"));
}

}  // namespace shardwise
