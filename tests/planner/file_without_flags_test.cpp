// What a file says by what it leaves out, and by several keys together.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {

// trl/trainer/utils.py, get_peft_config: nothing where use_peft is false, which it is by default.
TEST_CASE("TRL trains all weights where adapters are spoken of and not asked for") {
  const auto files = read_plan(
      "sft.yaml", "per_device_train_batch_size: 2\nlora_r: 32\nlora_target_modules: all-linear\n");
  REQUIRE(files);
  CHECK_FALSE(files->request.lora_rank);
  CHECK(files->request.methods == std::vector<Method>{Method::full});
  REQUIRE(files->reports.size() == 1);
  REQUIRE(files->reports.front().not_honoured.size() == 1);
  CHECK(files->reports.front().not_honoured.front().key == "lora_r");
}

TEST_CASE("torchtitan's name and flavor are one model") {
  const auto found =
      models_in({{"t.toml",
                  "[model]\nname = \"qwen3\"\nflavor = \"30B-A3B\"\n[parallelism]\n"
                  "data_parallel_shard_degree = -1\n"},
                 {"u.toml",
                  "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n[parallelism]\n"
                  "data_parallel_shard_degree = -1\n"}});
  REQUIRE(found.size() == 1);
  CHECK(found.front().name == "qwen3-30b-a3b");
  CHECK(found.front().where == "t.toml:3:model.flavor");
}

}  // namespace shardwise
