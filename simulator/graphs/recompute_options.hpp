// Recompute options: the ways to recompute part of one block that are worth considering.
//
// For each operator whose results backward needs there is a choice: keep them from forward on, or
// run it again, which then needs its inputs, and so on. Of all 2^n such choices only those remain
// that no other beats in both bytes kept and time spent; all of them, exactly. They are found from
// the last operator back: what matters of the choices made so far is which earlier tensors they
// need, the bytes and the time, so for equal needs only the unbeaten pairs go on.
#pragma once

#include <vector>

#include "simulator/graphs/operators.hpp"
#include "simulator/picoseconds.hpp"

namespace shardwise {

struct RecomputeOption {
  std::vector<bool> again;  // per operator: runs again by this choice (what `always` says left out)
  Bytes kept;               // from forward to backward, in the allocator's units of 512 B
  Picoseconds time;         // to run again what is chosen
  friend bool operator==(const RecomputeOption&, const RecomputeOption&) = default;
};

// By time, rising; bytes fall. `forward`: of each operator, on the GPU. `always`: operators that
// the compiler runs again whatever is chosen, at no cost here.
std::vector<RecomputeOption> recompute_options(const LayerGraph& graph,
                                               const std::vector<Picoseconds>& forward,
                                               const std::vector<bool>& always);

}  // namespace shardwise
