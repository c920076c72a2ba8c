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

// Tokens of the fullest of `places` over their mean, where each holds `experts` whose tokens differ
// independently by `spread` of their mean: the largest of as many normal draws (Blom's median).
double fullest_place(double spread, std::int64_t experts, int places);

// Of the experts of a mixture over `ranks`: what was told, or more where experts differ by more; 1
// where all are padded to one capacity or get every token.
double fullest_rank(const Workload& w, int ranks);

}  // namespace shardwise
