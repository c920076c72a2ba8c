// At how many places a token's experts lie.
#pragma once

#include <cstdint>

#include "catalog/transformer.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Mean number of `places` (ranks or nodes that hold equally many of the experts, in their order)
// where at least one of a token's experts lies, all of them drawn evenly: from all experts, or from
// the groups that the token's router chooses. Between 1 and top_k for places >= 1.
double visited_places(const MixtureOfExperts& moe, double places);

// Tokens of the fullest of `places` over their mean, at least 1, where each holds `experts` whose
// tokens differ independently by `spread` of their mean: the largest of as many draws (Blom's
// median) of a log-normal distribution, which ranks of DeepSeek-V3 follow (deepseek-ai/DeepEP pull
// request 393). DeepSeek-R1's 32 ranks of eight experts, which differ by 0.480, have 2.56 times the
// mean at most (NVIDIA/TensorRT-LLM @195a8bdc examples/ep_load_balancer/README.md): 2.31 here, 1.99
// of normal draws.
double fullest_place(double spread, std::int64_t experts, int places);

// Of the experts of a mixture over `ranks`: what was told, or more where experts differ by more; 1
// where all are padded to one capacity or get every token.
double fullest_rank(const Workload& w, int ranks);

}  // namespace shardwise
