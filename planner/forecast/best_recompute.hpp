// Best recompute: for every block the operators to run again, such that the least time is spent on
// re-runs and the step still fits.
//
// Per stage, on its own: minimise the sum of re-run times over its blocks, where what the memory
// play says must fit the card (or the budget). With F microbatches in flight memory rises with S,
// the bytes kept by all blocks, and with F S less those of the last block, which backward frees
// first. The path of mixes (recompute_mix.hpp) is halved until two neighbours are found of which
// one fits, then that of the others where the last block keeps all it can; what is better lies
// below a line through these, so for each option of the last block the mixes of the others there
// are halved in turn. Where they are few they are all there are: of all assignments whose tensors
// need no more memory than those of the one found none is faster; the tests try them all. Where
// they are many (32 blocks, each with a hundred options) they are those of which one block at most
// is not as on the path, and the last one's options are those of the ways found so far; what that
// may miss is of the order of one block's change.
// Where the allocator cannot place those tensors they get 1, 2, 4, ... segments less until it can,
// and then back by halves to one segment: more room that can be placed may lie between.
#pragma once

#include <memory>

#include "planner/forecast/forecast.hpp"
#include "simulator/graphs/recompute_policy.hpp"

namespace shardwise {

// Without a budget: the card, so that the verdict is "fits" and not "tight" where that can be had.
// Where nothing fits, all that can be saved is. REQUIRES a legal plan and a row that is searched.
std::shared_ptr<const BlockRecompute> best_recompute(const Question& question,
                                                     const Profile& profile,
                                                     const RecomputePolicy& asked);

}  // namespace shardwise
