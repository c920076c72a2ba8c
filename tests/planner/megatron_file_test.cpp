// Megatron-LM's arguments, as they are found in the wild, read as the plan to judge.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {

TEST_CASE("Megatron's arguments in a script, with variables and virtual stages") {
  const auto files =
      read_plan("train.sh",
                "TP=2\nMODEL=(--num-layers 32 --hidden-size 4096)\n"
                "torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL[@]} \\\n"
                "  --tensor-model-parallel-size $TP --sequence-parallel \\\n"
                "  --pipeline-model-parallel-size 2 "
                "--num-layers-per-virtual-pipeline-stage 4 \\\n"
                "  --micro-batch-size 2 --global-batch-size 64 --seq-length 4096 \\\n"
                "  --use-distributed-optimizer --recompute-granularity full \\\n"
                "  --recompute-method block --recompute-num-layers 3 --bf16\n");
  // dp = 8 / (2 x 2); 32 layers / (4 x 2 stages) = 4 chunks per stage.
  CHECK(plan_of(files) ==
        "dp=2,tp=2,sp=true,pp=2,vpp=4,schedule=interleaved,zero=1,mbs=2,recompute=blocks-3,"
        "offload=none");
  REQUIRE(files);
  CHECK(files->request.batch == 64);
  CHECK(files->request.sequence == 4096);
}

// Megatron's own examples quote key and value together and expand the array unquoted.
TEST_CASE("Megatron's arguments in quoted pairs") {
  const auto files = read_plan("train.sh",
                               "ARGS+=(\"--fp8-format hybrid\" \"--bf16\")\n"
                               "torchrun pretrain_gpt.py ${ARGS[*]} --micro-batch-size 1 \\\n"
                               "  --tensor-model-parallel-size 2 --global-batch-size 8\n");
  REQUIRE(files);
  CHECK(files->request.precision == DType::fp8);
  CHECK(plan_of(files).find("tp=2") != std::string::npos);
}

// 32 layers on two stages are 16 each, which chunks of three do not fill; one stage has no chunks.
TEST_CASE("Megatron's virtual stages that cannot be are told what would do") {
  const std::string args = "--num-layers 32 --num-layers-per-virtual-pipeline-stage ";
  CHECK(
      plan_of(read_plan("m.sh", args + "3 --pipeline-model-parallel-size 2\n")) ==
      "m.sh:1:num-layers-per-virtual-pipeline-stage: the 32 layers do not divide into chunks of 3 "
      "on 2 stages");
  CHECK(plan_of(read_plan("m.sh", args + "4\n"))
            .find("expected --pipeline-model-parallel-size above 1") != std::string::npos);
}

TEST_CASE("Megatron's precision-aware optimizer is read where both moments have 16 bits") {
  const std::string start = "python pretrain_gpt.py --micro-batch-size 1 --optimizer adam ";
  const auto both =
      read_plan("m.sh", start +
                            "--use-precision-aware-optimizer --main-params-dtype fp32 "
                            "--main-grads-dtype fp32 "
                            "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16\n");
  REQUIRE(both);
  CHECK(both->request.optimizer == optimizer_named("adamw-bf16-states"));
  CHECK(both->reports.front().not_honoured.empty());

  const auto one =
      read_plan("m.sh", start + "--use-precision-aware-optimizer --exp-avg-dtype bf16\n");
  REQUIRE(one);
  CHECK(one->request.optimizer == optimizer_named("adamw"));
  CHECK(notes(one->reports.front().not_honoured, "use-precision-aware-optimizer"));
  CHECK(notes(one->reports.front().not_honoured, "exp-avg-dtype"));
  const auto& understood = one->reports.front().understood;
  CHECK(std::find(understood.begin(), understood.end(), "exp-avg-dtype") == understood.end());

  const auto without = read_plan("m.sh", start +
                                             "--exp-avg-sq-dtype bf16 --main-params-dtype fp16 "
                                             "--main-grads-dtype bf16 --grad-reduce-in-bf16\n");
  REQUIRE(without);
  CHECK(without->request.optimizer == optimizer_named("adamw"));
  for (const char* key :
       {"exp-avg-sq-dtype", "main-params-dtype", "main-grads-dtype", "grad-reduce-in-bf16"}) {
    INFO(key);
    CHECK(notes(without->reports.front().not_honoured, key));
  }
}

}  // namespace shardwise
