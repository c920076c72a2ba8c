// Which plans Megatron-LM can be told, and trains by once it is told them.
#pragma once

#include "planner/launch/plan_refusal.hpp"
#include "planner/question.hpp"

namespace shardwise {

void refuse_megatron_plan(Refusals& to, const Question& question);

}  // namespace shardwise
