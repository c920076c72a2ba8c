// How far a method goes on these GPUs: the longest sequence, the most sequences that one GPU passes
// through at once at the length asked for, and the largest rank of its adapters. Each is found by
// asking the same question again with that one figure changed (choose_plan), so another plan than
// the answer's may be what takes it.
//
// Lengths are looked at in steps of 128 tokens, from 4,096 tokens on in steps of a sixteenth to an
// eighth of them; that a longer one never takes less memory is relied upon. Ranks are looked at in
// steps of 8, up to the width of the residual stream: a square linear has none beyond.
#pragma once

#include <optional>

#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

constexpr int rank_step = 8;  // of the ranks looked at

struct Reached {
  int value = 0;      // tokens per sequence, sequences per microbatch, or a rank
  bool open = false;  // the search ended here: more may fit
  int step = 1;       // to the next figure looked at, which is too much where the search has an end
  ChosenPlan chosen;
};

struct Reach {
  std::optional<Reached> sequence, roomy_sequence;      // at all; with room to spare
  std::optional<Reached> microbatch, roomy_microbatch;  // not looked for where a plan is named
  bool adapters = false;                                // else there is no rank to look for
  std::optional<Reached> rank, roomy_rank;
};

Reach reach(const ResolvedRequest& request, Method method, const Cluster& cluster);

}  // namespace shardwise
