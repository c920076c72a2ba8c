// torchtitan's files, as they are found in the wild, read as the plan to judge.
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {

TEST_CASE("torchtitan's defaults hold where a file is silent") {
  const auto files = read_plan("t.toml",
                               "[training]\nlocal_batch_size = 8\n[parallelism]\n"
                               "pipeline_parallel_degree = 2\npipeline_parallel_schedule = "
                               "\"Interleaved1F1B\"\n[activation_checkpoint]\nmode = \"none\"\n",
                               "16xH100-SXM");
  // The embedding and the head count as a layer each: (32 + 2) / 4 stages = 9, 9, 8, 8 less one at
  // either end. Without a word on resharding, pipeline stages keep what they gathered (ZeRO-2).
  CHECK(plan_of(files) ==
        "dp=8,pp=2,vpp=2,schedule=interleaved,zero=2,mbs=1,ga=8,recompute=none,layers=8/9/8/7");
}

// 32 GPUs / (tp 8 x cp 2) = 2 data ranks, which shard with the context ranks (ZeRO-3, its default).
TEST_CASE("torchtitan 0.1's names, and float8 where a converter says it") {
  const auto files =
      read_plan("t.toml",
                "[model]\nconverters = [\"float8\"]\n"
                "[training]\nbatch_size = 4\ntensor_parallel_degree = 8\n"
                "data_parallel_shard_degree = -1\nmixed_precision_param = \"bfloat16\"\n"
                "[experimental]\ncontext_parallel_degree = 2\n"
                "[activation_checkpoint]\nmode = \"none\"\n",
                "32xH100-SXM");
  CHECK(plan_of(files) ==
        "dp=2,tp=8,sp=true,cp=2,cp-kind=all-gather,zero=3,mbs=4,ga=1,recompute=none");
  REQUIRE(files);
  CHECK(files->request.precision == DType::fp8);
}

// torchtitan's own default is every second layer; the option says another number, or "op".
TEST_CASE("torchtitan's selective checkpointing by layers is one layer in so many") {
  const std::string head =
      "[training]\nseq_len = 4096\nlocal_batch_size = 2\n[parallelism]\ntensor_parallel_degree = "
      "4\n";
  const auto recompute = [&](const std::string& rest) {
    const std::string plan = plan_of(read_plan("t.toml", head + rest));
    const std::size_t at = plan.find("recompute=");
    return at == std::string::npos ? plan : plan.substr(at);
  };
  const std::string option = "[activation_checkpoint]\nselective_ac_option = ";
  CHECK(recompute("") == "recompute=one-in-2-layers");
  CHECK(recompute(option + "'3'\n") == "recompute=one-in-3-layers");
  CHECK(recompute(option + "'1'\n") == "recompute=full");
  CHECK(recompute(option + "'op'\n") == "recompute=selective-op");
  CHECK(recompute(option + "'x'\n").find("expected \"op\", or a number") != std::string::npos);
}

}  // namespace shardwise
