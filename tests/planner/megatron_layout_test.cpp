// Megatron's way to write which layers a stage has (--pipeline-model-parallel-layout).
#include "planner/launch/megatron_layout.hpp"

#include "tests/catch.hpp"

namespace shardwise {

TEST_CASE("Megatron's pipeline layouts") {
  CHECK(megatron_layout({7, 9, 0}) == "Et*7|t*9|L");
  CHECK(layers_in_layout("Et*7|t*9|L") == std::vector<int>{7, 9, 0});
  // The example of Megatron's help: three stages of one layer, then one with a MTP layer, one
  // empty, and the loss.
  CHECK(layers_in_layout("E|(t|)*3,m|m||L") == std::vector<int>{0, 1, 1, 1, 0, 0, 0, 0});
  CHECK(layers_in_layout("E(tt|)*2tL") == std::vector<int>{2, 2, 1});
  CHECK_FALSE(layers_in_layout("Et*7|x"));
  CHECK_FALSE(layers_in_layout("E(t|*3"));
  CHECK_FALSE(layers_in_layout("((((t)*999999)*999999)*999999)*999999"));
}

}  // namespace shardwise
