// Work on several GPUs that begins on all of them when all of it is in their queues.
#pragma once

#include <functional>

#include "calibrate/device/rank_group.hpp"

namespace shardwise {

// `enqueue_all` puts the work of every GPU into its stream; it makes each current itself. The time
// is that of the slowest.
Sample timed_together(const std::vector<Gpu*>& gpus, const std::function<void()>& enqueue_all);

void on_each(const std::vector<Gpu*>& gpus, const std::function<void(std::size_t)>& work);

}  // namespace shardwise
