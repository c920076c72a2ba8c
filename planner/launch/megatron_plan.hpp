// Which plans Megatron-LM can be told, and trains by once it is told them.
#pragma once

#include "planner/forecast/forecast.hpp"
#include "planner/launch/plan_refusal.hpp"

namespace shardwise {

void refuse_megatron_plan(Refusals& to, const Question& question);

}  // namespace shardwise
