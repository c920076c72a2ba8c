// LLaMA-Factory's YAML, which holds the Trainer's keys beside its own.
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

Result<PlanFiles> factory_says(const std::vector<PlanText>& texts) {
  return read_as(request_for("llama-3-8b", "2xRTX-4090"), texts);
}

// Of examples/train_qlora/llama3_lora_sft_otfq.yaml, but for what `more` adds.
PlanText example(const std::string& more) {
  return {"sft.yaml",
          "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\ndo_train: true\n"
          "cutoff_len: 4096\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n"
          "bf16: true\n" +
              more};
}

}  // namespace

// Adapters are its default, and so is checkpointing; 4-bit weights are quantised twice.
TEST_CASE("a LLaMA-Factory file says its method, not full fine-tuning") {
  const auto qlora = factory_says(
      {example("finetuning_type: lora\nlora_rank: 16\nlora_target: all\nquantization_bit: 4\n")});
  REQUIRE(qlora);
  CHECK(qlora->request.plans.front() == "mbs=1,ga=8,recompute=full");
  CHECK(qlora->request.methods == std::vector<Method>{Method::qlora});
  CHECK(qlora->request.quantization == Quantization::nf4_double);
  CHECK(qlora->request.lora_rank == 16);
  CHECK(qlora->request.sequence == 4096);
  CHECK(qlora->request.framework == "llama-factory");
  CHECK(qlora->reports.front().not_honoured.empty());

  const auto lora = factory_says({example("disable_gradient_checkpointing: true\n")});
  REQUIRE(lora);
  CHECK(lora->request.methods == std::vector<Method>{Method::lora});
  CHECK(lora->request.plans.front() == "mbs=1,ga=8,recompute=none");

  const auto full = factory_says(
      {example("finetuning_type: full\ndeepspeed: ds.json\n"),
       {"ds.json", R"({"zero_optimization": {"stage": 3}, "train_batch_size": "auto"})"}});
  REQUIRE(full);
  CHECK(full->request.methods == std::vector<Method>{Method::full});
  CHECK(full->request.framework == "llama-factory-deepspeed");
  CHECK(full->request.plans.front().find("zero=3") != std::string::npos);
}

TEST_CASE("LLaMA-Factory's linears, preferences and other kernels") {
  const auto some = factory_says({example("lora_target: q_proj,v_proj\nuse_dora: true\n")});
  REQUIRE(some);
  CHECK(some->request.methods == std::vector<Method>{Method::dora});
  CHECK(some->request.lora_targets == "q,v");
  const auto simpo =
      factory_says({{"dpo.yaml",
                     "stage: dpo\npref_loss: simpo\nfinetuning_type: lora\nuse_unsloth: true\n"
                     "per_device_train_batch_size: 2\n"}});
  REQUIRE(simpo);
  CHECK(simpo->request.preference == preference_named("simpo"));
  CHECK(simpo->reports.front().not_honoured.size() == 1);  // unsloth
  CHECK_FALSE(factory_says({example("finetuning_type: freeze\n")}));
  // Of names that nothing has, PEFT makes nothing where others are found.
  const auto beside = factory_says({example("lora_target: q_proj,nosuch\n")});
  REQUIRE(beside);
  CHECK(beside->request.lora_targets == "q");
  CHECK(beside->reports.front().not_honoured.front().key == "lora_target");
  CHECK_FALSE(factory_says({example("lora_target: nosuch\n")}));
}

}  // namespace shardwise
