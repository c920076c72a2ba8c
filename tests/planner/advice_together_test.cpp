// Several small changes where none does alone, and the requests that ask for what advice says.
#include <cmath>

#include "planner/advice/advice.hpp"
#include "planner/request/spoken_request.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct Missed {
  ResolvedRequest request;
  ChosenPlan chosen;
  std::vector<Advice> advice;

  explicit Missed(const Request& r) : request(resolved(r)) {
    const Method method = request.methods.front();
    auto found = choose_plan(request, method, request.clusters.front());
    REQUIRE(found);
    chosen = *std::move(found);
    REQUIRE(chosen.verdict == Verdict::does_not_fit);
    advice = advise(request, method, request.clusters.front(), chosen);
  }

  const Advice* about(const std::string& words) const {
    for (const Advice& a : advice)
      if (a.change.find(words) != std::string::npos) return &a;
    return nullptr;
  }
};

Request asked_for(const char* model, const char* gpus, Method method, const char* plan) {
  Request r = request_for(model, gpus, {method});
  if (*plan != '\0') r.plans = {plan};
  return r;
}

}  // namespace

// 8.03 B parameters: under ZeRO-1 weights and gradients stay whole, 2 x 15 GiB in bf16 of 39.6, and
// what four sequences keep without recomputation is more than the rest. ZeRO-3 leaves 15 GiB of
// all states, but still not room for four sequences; one sequence alone does not make room for the
// states of ZeRO-1. Both do.
TEST_CASE("two small changes are advised where none does alone") {
  const Missed m(
      asked_for("llama-3.1-8b", "8xA100-40GB", Method::full, "dp=8,zero=1,mbs=4,recompute=none"));
  const Advice* both = m.about("together");
  REQUIRE(both != nullptr);
  CHECK(both == &m.advice.front());
  CHECK(both->change == "zero=3 instead of 1 and microbatches of 1 instead of 4 together");
  CHECK(both->verdict != Verdict::does_not_fit);
  // The same sequences per step: 8 x 4.
  CHECK(both->question.plan.global_batch() == 32);
  const Advice* other = m.about("another plan than the one asked for");
  REQUIRE(other != nullptr);
  CHECK(other->question.plan.global_batch() == 32);
  CHECK(other->step_time.expected <= both->step_time.expected);
}

TEST_CASE("where one small change does, several are not told") {
  const Missed m(
      asked_for("llama-3.1-8b", "8xA100-40GB", Method::full, "dp=8,zero=3,mbs=8,recompute=none"));
  CHECK(m.about("microbatches of") != nullptr);
  CHECK(m.about("together") == nullptr);
}

// 131,072 tokens of 128,256 words are 31 GiB of logits in bf16 alone: without them longer sequences
// are left than where nothing else changes.
TEST_CASE("shorter sequences are longer with small changes beside them") {
  Request r = request_for("8b", "4x4090", {Method::qlora});
  r.sequence = 131072;
  const Missed m(r);
  int alone = 0, beside = 0;
  for (const Advice& a : m.advice) {
    if (a.change.find("tokens instead of") == std::string::npos) continue;
    (a.change.find("--fused-loss") == std::string::npos ? alone : beside) =
        a.question.workload.sequence;
  }
  CHECK(beside > alone);
}

// What it says can be asked for: the same plan, the same memory and the same step.
TEST_CASE("the request of an advice asks for what it forecast") {
  int asked = 0;
  for (const Request& r :
       {asked_for("llama-3.1-8b", "8xA100-40GB", Method::full, "dp=8,zero=1,mbs=4,recompute=none"),
        asked_for("qwen2.5-7b", "4x3090", Method::full, ""),
        asked_for("llama-3.2-3b", "3060", Method::full, ""),
        asked_for("70b", "4x4090", Method::lora, ""), asked_for("1b", "2070", Method::full, ""),
        asked_for("70b", "6x24GB", Method::lora, "")}) {
    const Missed m(r);
    REQUIRE_FALSE(m.advice.empty());
    for (const Advice& a : m.advice) {
      INFO(*r.model << ' ' << *r.gpus << ": " << a.change);
      REQUIRE(a.request);
      INFO(spoken_request("fit", *a.request));
      const auto again = resolve(*a.request, known_facts(), UnnamedMethods::fine_tuning);
      REQUIRE(again);
      const auto chosen =
          choose_plan(*again, again->methods.front(), again->clusters.front(), Room::weighed);
      REQUIRE(chosen);
      CHECK(whole_text(chosen->question.plan) == a.plan);
      CHECK(chosen->forecast.worst().peak.device == a.device);
      CHECK(chosen->forecast.step_time.expected == a.step_time.expected);
      CHECK(chosen->verdict == a.verdict);
      ++asked;
    }
  }
  CHECK(asked > 20);
}

// Turing has no bf16: a Trainer keeps fp32 weights there, and 16-bit ones on the cards that are
// advised instead: 16 and 8 bytes of each of 1.24 B parameters.
TEST_CASE("bigger cards are forecast as they train") {
  const Missed m(asked_for("1b", "2070", Method::full, ""));
  const Advice* bigger = m.about("1 card of");
  REQUIRE(bigger != nullptr);
  CHECK(bigger->question.workload.compute == DType::bf16);
  CHECK(m.chosen.question.workload.compute != DType::bf16);
}

TEST_CASE("a request is spoken as somebody would type it") {
  Request r = request_for("8b", "2x3090 + 4090", {Method::lora, Method::qlora});
  r.sequence = 4096;
  r.host_ram = Bytes(64LL << 30);
  r.fused_loss = true;
  r.plans = {"dp=3,zero=3"};
  CHECK(spoken_request("fit", r) ==
        "shardwise fit 8b --gpus '2x3090 + 4090' --host-ram 64GiB --method lora --method qlora "
        "--seq 4096 --plan dp=3,zero=3 --fused-loss");
  r.top = 5;  // of plan alone
  CHECK(spoken_request("fit", r).find("--top") == std::string::npos);
}

}  // namespace shardwise
