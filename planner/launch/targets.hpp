// The launch targets, each in a file of its own.
#pragma once

#include "planner/launch/launch_target.hpp"

namespace shardwise {

LaunchTarget torchrun_target();
LaunchTarget accelerate_target();
LaunchTarget deepspeed_target();
LaunchTarget torchtitan_target();
LaunchTarget megatron_target();
LaunchTarget axolotl_target();

}  // namespace shardwise
