// What an axolotl file loads, beyond what its keys say one by one.
#include <algorithm>

#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/model_states.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

Result<PlanFiles> read_yaml(const std::string& text, const std::string& model) {
  return read_plan("a.yaml", text, "8xH100-SXM", model);
}

}  // namespace

// bitsandbytes passes over the experts of transformers 5 unless axolotl is told to quantise them
// itself (docs/expert_quantization.qmd), which its schema refuses beside lora_target_linear.
TEST_CASE("axolotl's experts stay whole unless they are said to be quantised") {
  const std::string start =
      "base_model: mistralai/Mixtral-8x7B-v0.1\nadapter: qlora\nload_in_4bit: true\n"
      "micro_batch_size: 1\ngradient_accumulation_steps: 4\n";
  const auto framework_of = [&](const std::string& more, const std::string& model) {
    const auto files = read_yaml(start + more, model);
    REQUIRE(files);
    return *files->request.framework;
  };
  CHECK(framework_of("lora_target_linear: true\n", "mixtral-8x7b") == "axolotl-whole-experts");
  CHECK(framework_of("quantize_moe_experts: true\n", "mixtral-8x7b") == "axolotl");
  CHECK(framework_of("lora_target_linear: true\n", "llama-3.1-8b") == "axolotl");
  const auto both =
      read_yaml(start + "quantize_moe_experts: true\nlora_target_linear: true\n", "mixtral-8x7b");
  REQUIRE(both);
  const std::vector<KeyNote>& unmet = both->reports.front().not_honoured;
  CHECK(std::any_of(unmet.begin(), unmet.end(),
                    [](const KeyNote& note) { return note.key == "lora_target_linear"; }));
}

// PEFT's preparation, which FSDP with QLoRA skips, makes fp32 of what is not packed: Mixtral's
// 45.1e9 weights of experts are 168 GiB then, and in 16 bits over eight ranks 10.5 each.
TEST_CASE("axolotl's whole experts are fp32 where nothing is sharded") {
  Request request = request_for("mixtral-8x7b", "8xH100-SXM", {Method::qlora});
  request.framework = "axolotl-whole-experts";
  const ResolvedRequest r = resolved(request);
  const Workload w = choose_workload(r, Method::qlora, r.clusters.front(), 0).workload;
  const double experts = 32.0 * 8 * 3 * 4096 * 14336;
  const double rest = 1.6e9;  // attention in 4 bits, tables in 16, adapters: less than 16 bits each
  const double whole = static_cast<double>(model_states(w).value);
  CHECK(whole > 4 * experts);
  CHECK(whole < 4 * experts + 2 * rest);
  ParallelPlan sharded;
  sharded.data = 8;
  sharded.zero_stage = 3;
  const double each = static_cast<double>(states_on_gpu(w, sharded).value);
  CHECK(each > 2 * experts / 8);
  CHECK(each < 2 * experts / 8 + 2 * rest);
}

}  // namespace shardwise
