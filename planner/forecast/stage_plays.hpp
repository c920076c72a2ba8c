// Stage plays: what the allocator does on every stage of a pipeline, from the plays of a few.
//
// Stages of equal layers differ in how many microbatches they hold in flight, and each of these
// adds the same tensors. So of a run of such stages the first, the middle one and the last are
// played. Where the middle one lies on the line between the others, every stage between takes its
// figures from that line; where it does not (for few in flight another moment of the step is the
// fullest, or segments fill up otherwise), each half of the run is looked at in the same way.
//
// The fullest stage is always one that was played: a line is highest at an end.
#pragma once

#include <functional>
#include <vector>

#include "simulator/memory/memory_play.hpp"

namespace shardwise {

// The stages of a plan, and how one is played. Functions of stages are asked for 0 <= s < stages.
struct StagesToPlay {
  int stages = 1;
  std::function<StageMemory(int)> play;
  // Whether a stage and the one before it hold equal layers on equal cards.
  std::function<bool(int)> like_the_one_before;
  std::vector<std::vector<Slot>> slots;  // by stage: what is played
  bool may_lie_between = true;  // false: play every stage, but for those that do just the same
};

// One answer per stage. Where a play was given up, the others are not asked for and stand as it.
std::vector<StageMemory> stage_plays(const StagesToPlay& of);

// By stage, the first one that does just the same: equal layers on equal cards, and equal slots.
std::vector<int> first_of_the_same(const StagesToPlay& of);

}  // namespace shardwise
