// Does a 32B QLoRA at 4k context run on two RTX 3090? As `shardwise fit` answers it, from C++.
#include <iostream>

#include "planner/answers/fit_answer.hpp"
#include "planner/request/calibrated_facts.hpp"

int main() {
  shardwise::Request request;
  request.model = "32b";
  request.gpus = "2xRTX-3090";
  request.methods = {shardwise::Method::qlora};
  request.sequence = 4096;
  const auto facts = shardwise::calibrated_facts(SHARDWISE_CATALOG, request);
  if (!facts) return 4;
  const auto resolved = resolve(request, *facts, shardwise::UnnamedMethods::fine_tuning);
  if (!resolved) return 2;
  for (const auto& answer : fit_answers(*resolved).answers)
    std::cout << answer.gpu << ' ' << verdict_name(answer.chosen.verdict) << ", a step takes "
              << answer.chosen.forecast.step_time.expected.value << " s\n";
}
