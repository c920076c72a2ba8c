#include "planner/search/lent_plays.hpp"

#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Result<ChosenPlan> chosen(const ResolvedRequest& r, LentPlays* lent) {
  return choose_plan(r, r.methods.front(), r.clusters.front(), Room::weighed, nullptr,
                     Looked::decisive, lent);
}

}  // namespace

// Cards of one memory and of others, in bf16 and in fp16 (V100, T4), one of them and two.
TEST_CASE("choices that lend each other plays make the same answers") {
  int answers = 0, lent_to = 0;
  for (const Method method : {Method::full, Method::qlora})
    for (const char* framework : {"", "axolotl", "torchtune", "megatron-lm"}) {
      LentPlays lent;
      for (const char* gpus : {"RTX-4090", "RTX-3090", "A10G", "L4", "V100-SXM2-32GB", "T4",
                               "A100-80GB", "H100-SXM", "2xRTX-4090", "2xRTX-3090", "2xA6000"}) {
        Request asked = request_for("llama-3.2-1b", gpus, {method});
        if (*framework != '\0') asked.framework = framework;
        const auto r = resolve(asked, known_facts(), UnnamedMethods::one);
        if (!r) continue;
        INFO(name(method) << " on " << gpus << " in " << framework);
        const auto alone = chosen(*r, nullptr);
        if (alone) lent_to += lent.of(alone->question) != nullptr;
        const auto with = chosen(*r, &lent);
        REQUIRE(static_cast<bool>(alone) == static_cast<bool>(with));
        if (!alone) continue;
        ++answers;
        CHECK(alone->question.plan == with->question.plan);
        CHECK(alone->verdict == with->verdict);
        CHECK(alone->notes == with->notes);
        CHECK(alone->forecast.notes == with->forecast.notes);
        CHECK(alone->forecast.step_time.expected == with->forecast.step_time.expected);
        CHECK(alone->forecast.peak_device.expected == with->forecast.peak_device.expected);
        CHECK(alone->forecast.worst().needed == with->forecast.worst().needed);
      }
    }
  CHECK(answers > 40);
  CHECK(lent_to > 20);
}

// In full its weights have gradients, whatever the card.
TEST_CASE("plays are lent to the same plan by the same method alone") {
  LentPlays lent;
  const auto request = [](const char* gpus, Method method) {
    return resolved(request_for("llama-3.2-1b", gpus, {method}));
  };
  const ResolvedRequest one = request("RTX-4090", Method::qlora);
  const auto first = chosen(one, &lent);
  REQUIRE(first);
  CHECK(lent.of(first->question) != nullptr);
  Question other = first->question;
  other.plan.microbatch *= 2;
  CHECK(lent.of(other) == nullptr);
  other = first->question;
  other.workload.method = Method::full;
  CHECK(lent.of(other) == nullptr);
}

}  // namespace shardwise
