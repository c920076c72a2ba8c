#include <array>

#include "planner/launch/formats.hpp"
#include "planner/launch/plan_file.hpp"

namespace shardwise {
namespace {

// The first whose mark is found is the one, so what is unmistakable comes first.
const std::array<PlanFileFormat, 11>& formats() {
  static const std::array<PlanFileFormat, 11> rows{
      fully_shard_format(), torchtune_format(),  accelerate_format(), deepspeed_format(),
      axolotl_format(),     torchtitan_format(), megatron_format(),   llama_factory_format(),
      ms_swift_format(),    trl_reward_format(), trl_format()};
  return rows;
}

}  // namespace

std::span<const PlanFileFormat> plan_file_formats() { return formats(); }

}  // namespace shardwise
