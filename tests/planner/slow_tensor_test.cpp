// Tensor parallelism over other links than NVLink: when a plan with it is looked at.
#include "planner/search/plan_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/chosen_plan.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

// 46.7 G weights in torchtitan's 32 bits are 174 GiB, 43.5 of the 44.4 that each of four cards has
// where all hold the same: tensor parallelism over PCIe cuts them so, a pipeline of four does not.
TEST_CASE("tensor parallelism without NVLink is tried where nothing else fits") {
  Request r = request_for("mixtral-8x7b", "4xL40S", {Method::lora});
  r.framework = "torchtitan";
  r.sequence = 512;
  r.batch = 16;
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict != Verdict::does_not_fit);
  CHECK(c.question.plan.tensor > 1);
  r.gpus = "8xL40S";  // where a plan without fits, it is not
  CHECK(chosen(r).question.plan.tensor == 1);
}

// 16 bytes for each of 3.21 G parameters are 12.0 GiB on each of four cards, and 16 bytes for each
// of 4,096 x 128,256 logits (in 16 and 32 bits, with their gradients) 7.8: with a gathered layer
// and the context 21 of the 22.2 GiB of an L4, tightly. Two cards that cut the logits hold 3.9 GiB
// less of them, and over PCIe too take less than twice the time.
TEST_CASE("tensor parallelism without NVLink is tried where what fits is tight") {
  Request r = request_for("llama-3.2-3b", "4xL4", {Method::full});
  r.sequence = 4096;
  r.batch = 16;
  const ChosenPlan roomy = chosen(r);
  CHECK(roomy.verdict == Verdict::fits);
  CHECK(roomy.question.plan.tensor == 2);
  r.plans = {"dp=4,zero=3,mbs=1,ga=4,recompute=full"};
  const ChosenPlan whole = chosen(r);
  CHECK(whole.verdict == Verdict::tight);
  CHECK(roomy.forecast.step_time.expected < 2 * whole.forecast.step_time.expected);
}

}  // namespace shardwise
