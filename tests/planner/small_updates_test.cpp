// The note on bf16 weights that have no fp32 copy: where it holds, and nowhere else.
#include <algorithm>

#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

bool told(const char* framework, Method method, int zero = 0, const char* gpus = "2xH100-SXM") {
  Request request = request_for("llama-3.2-1b", gpus, {method});
  request.framework = framework;
  const ResolvedRequest r = resolved(request);
  const auto notes = choose_workload(r, method, r.clusters.front(), zero).notes;
  return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("rounded away") != std::string::npos;
  });
}

}  // namespace

// Transformers 5 trains the checkpoint's bf16; 4 loads fp32, and so does FSDP's mixed precision
// make of either. Adapters are fp32 beside frozen weights; DeepSpeed and Megatron keep masters;
// llmq rounds stochastically.
TEST_CASE("bf16 weights alone are told of") {
  CHECK(told("hf-trainer", Method::full));
  CHECK(told("torchtune", Method::full));
  CHECK_FALSE(told("hf-trainer", Method::lora));
  CHECK_FALSE(told("hf-trainer", Method::full, 3));
  CHECK_FALSE(told("hf-trainer-4", Method::full));
  CHECK_FALSE(told("hf-deepspeed", Method::full));
  CHECK_FALSE(told("megatron-lm", Method::pretrain));
  CHECK_FALSE(told("llmq", Method::pretrain));
  CHECK_FALSE(told("hf-trainer", Method::full, 0, "2xT4"));  // fp16: the scaler and fp32 weights
}

}  // namespace shardwise
