// What a method trains beside the frozen weights, in words.
#pragma once

#include <string>

#include "simulator/workload.hpp"

namespace shardwise {

// "  adapters of rank 16 on q,v; frozen weights in nf4", a line; empty where none is trained.
std::string adapter_text(const Workload& workload);

}  // namespace shardwise
