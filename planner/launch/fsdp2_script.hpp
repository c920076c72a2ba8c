// fsdp2_train.py: the training loop that the torchrun target writes, whatever the plan.
#pragma once

#include <string_view>

namespace shardwise {

std::string_view fsdp2_script();

}  // namespace shardwise
