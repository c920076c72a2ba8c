// The note on bf16 weights that have no fp32 copy: where it holds, and nowhere else.
#include <algorithm>

#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::string told_of(const char* framework, Method method, int zero = 0,
                    const char* gpus = "2xH100-SXM") {
  Request request = request_for("llama-3.2-1b", gpus, {method});
  request.framework = framework;
  const ResolvedRequest r = resolved(request);
  const auto notes = choose_workload(r, method, r.clusters.front(), zero).notes;
  const auto note = std::find_if(notes.begin(), notes.end(), [](const std::string& n) {
    return n.find("rounded away") != std::string::npos;
  });
  return note == notes.end() ? "" : *note;
}

}  // namespace

// Transformers 5 trains the checkpoint's bf16; 4 loads fp32, and so does FSDP's mixed precision
// make of either. Adapters are fp32 beside frozen weights; DeepSpeed and Megatron keep masters;
// llmq rounds stochastically.
TEST_CASE("bf16 weights alone are told of") {
  CHECK_FALSE(told_of("hf-trainer", Method::full).empty());
  CHECK_FALSE(told_of("torchtune", Method::full).empty());
  CHECK(told_of("hf-trainer", Method::lora).empty());
  CHECK(told_of("hf-trainer", Method::full, 3).empty());
  CHECK(told_of("hf-trainer-fp32", Method::full).empty());
  CHECK(told_of("hf-deepspeed", Method::full).empty());
  CHECK(told_of("megatron-lm", Method::pretrain).empty());
  CHECK(told_of("llmq", Method::pretrain).empty());
  CHECK(
      told_of("hf-trainer", Method::full, 0, "2xT4").empty());  // fp16: the scaler and fp32 weights
}

// The row that forecasts fp32 weights is the Trainer's; axolotl is no row of it.
TEST_CASE("the Trainer's row of fp32 weights is named to who runs the Trainer") {
  const auto names_it = [](const char* framework) {
    return told_of(framework, Method::full).find("hf-trainer-fp32") != std::string::npos;
  };
  CHECK(names_it("hf-trainer"));
  CHECK(names_it("hf-trainer-5"));
  CHECK(names_it("hf-trainer-one-length"));
  CHECK_FALSE(names_it("axolotl"));
}

}  // namespace shardwise
