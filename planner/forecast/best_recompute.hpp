// Best recompute: for every block the operators to run again, such that the least time is spent on
// re-runs and the step still fits.
//
// Per stage, on its own: minimise the sum of re-run times over its blocks, where what the memory
// play says must fit the card (or the budget). With F microbatches in flight memory rises with S,
// the bytes kept by all blocks, and with F S less those of the last block, which backward frees
// first. The path of mixes (recompute_mix.hpp) is halved until two neighbours are found of which
// one fits; what is better than that one lies below the line through both, so for each option of
// the last block the few mixes of the others there are halved in turn. So of all assignments whose
// tensors need no more memory than those of the one found, none is faster: the tests try them all.
// Where the allocator cannot place those tensors, they get a segment less until it can.
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
