// A script of ms-swift, whose arguments are the Trainer's beside its own.
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

Result<PlanFiles> swift_says(const std::string& more) {
  return read_plan("sft.sh",
                   "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct "
                   "--split_dataset_ratio 0.01 --max_length 4096 "
                   "--per_device_train_batch_size 1 --gradient_accumulation_steps 8 " +
                       more,
                   "2xRTX-4090", "qwen2.5-7b");
}

}  // namespace

// Adapters of rank 8 beside every linear and checkpointing are its defaults; version 2 had others.
TEST_CASE("a script of ms-swift trains adapters unless it says otherwise") {
  const auto usual = swift_says("");
  REQUIRE(usual);
  CHECK(usual->request.methods == std::vector<Method>{Method::lora});
  CHECK(usual->request.plans.front() == "mbs=1,ga=8,recompute=full");
  CHECK(usual->request.framework == "ms-swift");
  CHECK(usual->request.lora_targets == "all-linear");
  const auto second = swift_says("--sft_type lora");
  REQUIRE(second);
  CHECK_FALSE(second->request.lora_targets.has_value());
  CHECK(usual->request.sequence == 4096);
  CHECK(usual->reports.front().not_honoured.empty());
  const auto full = swift_says("--train_type full --gradient_checkpointing false");
  REQUIRE(full);
  CHECK(full->request.methods == std::vector<Method>{Method::full});
  CHECK(full->request.plans.front() == "mbs=1,ga=8,recompute=none");
  CHECK_FALSE(swift_says("--tuner_type vera"));
  CHECK_FALSE(swift_says("--rlhf_type grpo"));
}

// 16 / 2 = 8, as its examples write it; 2 * 3 = 6.
TEST_CASE("a script may leave a sum to expr") {
  const auto quotient = swift_says("--gradient_accumulation_steps $(expr 16 / $NPROC_PER_NODE)");
  REQUIRE(quotient);
  CHECK(quotient->request.plans.front() == "mbs=1,ga=8,recompute=full");
  const auto product = swift_says("--gradient_accumulation_steps $(expr $NPROC_PER_NODE \\* 3)");
  REQUIRE(product);
  CHECK(product->request.plans.front() == "mbs=1,ga=6,recompute=full");
  CHECK_FALSE(swift_says("--gradient_accumulation_steps $(expr 16 / $(nproc))"));
}

TEST_CASE("a script of megatron sft is told from one of swift sft") {
  const auto of_megatron = swift_says("--micro_batch_size 1 --tensor_model_parallel_size 2");
  REQUIRE_FALSE(of_megatron);
  REQUIRE(of_megatron.error().size() == 1);
  CHECK(holds(of_megatron.error().front().what, "megatron sft, whose engine is Megatron-Core"));
}

TEST_CASE("ms-swift's quantised weights are nf4, twice, unless it says otherwise") {
  const auto qlora = swift_says(
      "--tuner_type lora --lora_rank 16 --target_modules q_proj v_proj --quant_method bnb "
      "--quant_bits 4 --torch_dtype bfloat16");
  REQUIRE(qlora);
  CHECK(qlora->request.methods == std::vector<Method>{Method::qlora});
  CHECK(qlora->request.quantization == Quantization::nf4_double);
  CHECK(qlora->request.lora_rank == 16);
  CHECK(qlora->request.lora_targets == "q,v");
  CHECK(qlora->request.precision == DType::bf16);
  const auto once = swift_says("--quant_bits 4 --bnb_4bit_use_double_quant false");
  REQUIRE(once);
  CHECK(once->request.quantization == Quantization::nf4);
}

TEST_CASE("ms-swift names configurations of DeepSpeed that it brings along") {
  const auto zero = swift_says("--train_type full --deepspeed zero3_offload");
  REQUIRE(zero);
  CHECK(zero->request.framework == "ms-swift-deepspeed");
  CHECK(plan_of(zero).find("zero=3") != std::string::npos);
  CHECK((zero->request.offload ||
         plan_of(zero).find("offload=params+optimizer") != std::string::npos));
  const auto liger = swift_says("--use_liger_kernel true --sequence_parallel_size 2");
  REQUIRE(liger);
  CHECK(liger->reports.front().not_honoured.size() == 2);
}

}  // namespace shardwise
