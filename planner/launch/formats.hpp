// The formats of plan files, each in the file of its target (trl_script.cpp: of two) or, where
// nothing is written for it, its own.
#pragma once

#include "planner/launch/plan_file.hpp"

namespace shardwise {

PlanFileFormat fully_shard_format();
PlanFileFormat accelerate_format();
PlanFileFormat deepspeed_format();
PlanFileFormat axolotl_format();
PlanFileFormat torchtitan_format();
PlanFileFormat megatron_format();
PlanFileFormat llama_factory_format();
PlanFileFormat ms_swift_format();
PlanFileFormat torchtune_format();
PlanFileFormat trl_format();
PlanFileFormat trl_reward_format();

}  // namespace shardwise
