// torchtune's recipe configs, whose parts are named by their Python paths.
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

// Of recipes/configs/llama3_1/8B_lora_single_device.yaml, but for builder and what `more` adds.
PlanText recipe(const std::string& builder, const std::string& more) {
  return {"recipe.yaml",
          "model:\n  _component_: torchtune.models." + builder + "\n" + more +
              "tokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n"
              "  max_seq_len: 4096\nseed: null\nbatch_size: 2\ngradient_accumulation_steps: 8\n"
              "compile: False\nenable_activation_checkpointing: True\ndtype: bf16\n"
              "loss:\n  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss\n"};
}

Result<PlanFiles> torchtune_says(const std::string& builder, const std::string& more) {
  return read_as(request_for("llama-3.1-8b", "1xRTX-4090"), {recipe(builder, more)});
}

}  // namespace

TEST_CASE("the builder of torchtune's model says its method") {
  const auto lora = torchtune_says(
      "llama3_1.lora_llama3_1_8b",
      "  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']\n  apply_lora_to_mlp: True\n"
      "  apply_lora_to_output: False\n  lora_rank: 16\n  lora_alpha: 32\n");
  REQUIRE(lora);
  CHECK(lora->request.methods == std::vector<Method>{Method::lora});
  CHECK(lora->request.lora_rank == 16);
  CHECK(lora->request.lora_targets == "q,v,o,gate,up,down");
  CHECK(lora->request.sequence == 4096);
  CHECK(lora->request.plans.front() == "mbs=2,ga=8,recompute=full");
  CHECK(lora->request.framework == "torchtune");
  CHECK(lora->reports.front().not_honoured.empty());
  const auto qlora = torchtune_says("llama3_1.qlora_llama3_1_8b", "  lora_rank: 8\n");
  REQUIRE(qlora);
  CHECK(qlora->request.methods == std::vector<Method>{Method::qlora});
  CHECK(qlora->request.quantization == Quantization::nf4_double);
}

TEST_CASE("torchtune's optimizer in backward is a row of its own") {
  const PlanText full = {
      "full.yaml",
      "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\n"
      "batch_size: 2\noptimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\n"
      "  lr: 2e-5\noptimizer_in_bwd: True\nfsdp_cpu_offload: False\n"};
  const auto files = read_as(request_for("llama-3.1-8b", "1xRTX-4090"), {full});
  REQUIRE(files);
  CHECK(files->request.methods == std::vector<Method>{Method::full});
  CHECK(files->request.framework == "torchtune-low-memory");
  CHECK(files->request.optimizer == optimizer_named("paged-adamw8bit"));
}

TEST_CASE("the builder of torchtune's model names it") {
  const auto named = [](const char* builder) {
    const auto models = models_in({recipe(builder, "")});
    return models.empty() ? std::string() : models.front().name;
  };
  CHECK(named("llama3_1.lora_llama3_1_8b") == "llama3.1-8b");
  CHECK(named("qwen2_5.qwen2_5_0_5b") == "qwen2.5-0.5b");
  CHECK(named("mistral.qlora_mistral_7b") == "mistral-7b");
  CHECK(named("my.own_model").empty());
  const auto other = torchtune_says("llama2.lora_llama2_13b", "");
  REQUIRE(other);
  CHECK(notes(other->reports.front().not_honoured, "model._component_"));
  // A recipe without a model is none.
  CHECK_FALSE(read_as(request_for("llama-3.1-8b", "1xRTX-4090"),
                      {{"half.yaml", "tokenizer:\n  _component_: x\nbatch_size: 2\n"}}));
}

}  // namespace shardwise
