#include "planner/report/fit_text.hpp"

#include "planner/answers/fit_answer.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

// Two cards x 2 x 8 = 32 sequences, whatever number of them is usual.
TEST_CASE("the head line of fit says the batch of the plan that was asked for") {
  Request request = request_for("llama-3.1-8b", "2xRTX-4090", {Method::lora});
  request.plans = {"dp=2,mbs=2,ga=8,zero=3,recompute=full"};
  const ResolvedRequest r = resolved(request);
  const std::string text = fit_text(r, fit_answers(r), 80);
  CHECK(text.substr(0, text.find('\n')).find(", 32 sequences per step") != std::string::npos);
}

}  // namespace shardwise
