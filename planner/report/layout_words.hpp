// How a plan lays a model out, in words.
#pragma once

#include <string>

#include "simulator/parallel_plan.hpp"

namespace shardwise {

// "fully sharded (FSDP) over 6 GPUs, weights offloaded to the host"; "one GPU".
std::string layout_words(const ParallelPlan& plan);

// What lies in host RAM: "weights, optimizer"; empty where nothing does.
std::string offload_words(const ParallelPlan& plan);

}  // namespace shardwise
