// The Trainer's arguments as scripts in the wild spell them.
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Result<PlanFiles> trainer_says(const PlanText& text) {
  const Request request = request_for("llama-2-7b", "8xA100-80GB");
  const ResolvedRequest r = resolved(request);
  return with_plan_texts(request, {&r.model, &r.clusters.front(), &known_facts().catalog}, {text});
}

}  // namespace

// The command of Stanford Alpaca's README: flags that take Python's True, a list of FSDP's parts
// in quotes, the sequence under the tokenizer's name.
TEST_CASE("Alpaca's command is read") {
  const auto files = trainer_says(
      {"train.sh",
       "torchrun --nproc_per_node=8 --master_port=12345 train.py \\\n"
       "    --model_name_or_path meta-llama/Llama-2-7b-hf \\\n"
       "    --data_path ./alpaca_data.json \\\n    --bf16 True \\\n    --output_dir out \\\n"
       "    --num_train_epochs 3 \\\n    --per_device_train_batch_size 4 \\\n"
       "    --gradient_accumulation_steps 8 \\\n    --evaluation_strategy \"no\" \\\n"
       "    --learning_rate 2e-5 \\\n    --fsdp \"full_shard auto_wrap\" \\\n"
       "    --fsdp_transformer_layer_cls_to_wrap 'LlamaDecoderLayer' \\\n    --tf32 True \\\n"
       "    --gradient_checkpointing True --model_max_length 1024\n"});
  REQUIRE(files);
  REQUIRE(files->request.plans.size() == 1);
  CHECK(files->request.plans.front() == "zero=3,mbs=4,ga=8,recompute=full");
  CHECK(files->request.sequence == 1024);
  CHECK(files->request.precision == DType::bf16);
  CHECK(files->batch == 8 * 4 * 8);
}

TEST_CASE("FSDP's parts may be a list, and sequences go by TRL's older name") {
  const auto plan = [](const char* parts) {
    const auto files = trainer_says(
        {"sft.yaml", std::string("per_device_train_batch_size: 1\nmax_seq_length: 8192\nfsdp: ") +
                         parts + "\n"});
    if (!files) return files.error().front().what;
    CHECK(files->request.sequence == 8192);
    return files->request.plans.front();
  };
  CHECK(plan("[full_shard, auto_wrap]") == "zero=3,mbs=1");
  CHECK(plan("[shard_grad_op, auto_wrap]") == "zero=2,mbs=1");
  CHECK(plan("[full_shard, offload, auto_wrap]") == "zero=3,mbs=1,offload=params+optimizer");
  CHECK(plan("[hybrid_shard, auto_wrap]").find("expected full_shard") != std::string::npos);
}

}  // namespace shardwise
