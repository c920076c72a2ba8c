// Which of two plans that do not fit is nearer to fitting.
#pragma once

#include "planner/forecast/forecast.hpp"

namespace shardwise {

// First by what tensors lack on a GPU, then by what the host lacks. Where the host is what lacks,
// GPUs with room need no more of it: offloading would be in vain.
bool nearer(const Forecast& a, const Forecast& b);

}  // namespace shardwise
