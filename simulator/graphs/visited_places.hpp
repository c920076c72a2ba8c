// At how many places a token's experts lie.
#pragma once

#include "catalog/transformer.hpp"

namespace shardwise {

// Mean number of `places` (ranks or nodes that hold equally many of the experts, in their order)
// where at least one of a token's experts lies, all of them drawn evenly: from all experts, or from
// the groups that the token's router chooses. Between 1 and top_k for places >= 1.
double visited_places(const MixtureOfExperts& moe, double places);

}  // namespace shardwise
