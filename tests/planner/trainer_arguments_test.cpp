// The Trainer's arguments as scripts in the wild spell them.
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

Result<PlanFiles> trainer_says(const PlanText& text) {
  return read_as(request_for("llama-2-7b", "8xA100-80GB"), {text});
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
  CHECK(plan("[half_shard, auto_wrap]").find("expected full_shard") != std::string::npos);
}

// FSDP's hybrid strategies shard over the ranks of a node and repeat that on every node: of two
// nodes of eight GPUs, groups of eight. Alike in the Trainer's arguments and in Accelerate's and
// axolotl's files, which name whole sharding by words alike.
TEST_CASE("hybrid sharding is HSDP within nodes, in whichever file it stands") {
  const Request request = request_for("llama-2-7b", "2 nodes of 8xA100-80GB");
  const ResolvedRequest r = resolved(request);
  const auto plan = [&](const char* file, const std::string& text) {
    const auto files = with_plan_texts(
        request, {&r.model, &r.clusters.front(), &known_facts().catalog}, {{file, text}});
    if (!files) return files.error().front().what;
    CHECK(files->reports.front().not_honoured.empty());
    return files->request.plans.front();
  };
  const std::string trainer = "per_device_train_batch_size: 1\nfsdp: ";
  CHECK(plan("sft.yaml", trainer + "hybrid_shard auto_wrap\n") == "zero=3,shard=8,mbs=1");
  CHECK(plan("sft.yaml", trainer + "[hybrid_shard_zero2, auto_wrap]\n") == "zero=2,shard=8,mbs=1");
  const std::string axolotl = "base_model: x\nsequence_len: 2048\nmicro_batch_size: 1\n";
  for (const char* hybrid :
       {"fsdp:\n  - hybrid_shard\n  - auto_wrap\n",
        "fsdp_config:\n  sharding_strategy: HYBRID_SHARD\n",
        "fsdp_config:\n  fsdp_sharding_strategy: hybrid_shard\n  fsdp_offload_params: false\n"})
    CHECK(plan("axolotl.yaml", axolotl + hybrid) == "zero=3,shard=8,mbs=1");
  for (const char* whole : {"fsdp:\n  - full_shard\n  - auto_wrap\n",
                            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"})
    CHECK(plan("axolotl.yaml", axolotl + whole) == "zero=3,mbs=1");
  CHECK(plan("axolotl.yaml", axolotl + "fsdp: [full_shard, offload]\n") ==
        "zero=3,mbs=1,offload=params+optimizer");
  CHECK(plan("accelerate.yaml",
             "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n"
             "  fsdp_version: 1\n") == "zero=3,shard=8");
}

}  // namespace shardwise
