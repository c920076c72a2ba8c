// StagesTogether: what the stages of a pipeline take at the least, by all their slots.
//
// Each stage as in stage_alone.hpp, and a slot's input is there when the slot of the stage that
// sends it is done, and the transfer has taken the time that it takes where nothing else is on the
// way. So a pipeline whose chunks are not alike, where each stage waits for another one in turn, is
// bounded by what it waits for; what links share and what the host takes can only add to that.
#pragma once

#include <vector>

#include "planner/search/stage_alone.hpp"

namespace shardwise {

// What comes from other stages: of a stage's local chunk, from which direction.
struct ChunkInputs {
  int model_chunk = 0;
  Seconds sent_forward, sent_backward;  // on the way, where that takes a lane of its own
  ArrivalCost arrival;
};

// REQUIRES a schedule that holds the model once, slots of every stage of which none is paired with
// the next, and inputs by stage and local chunk.
std::vector<StageEnd> stages_together(const std::vector<KnownSlots::List>& slots,
                                      PipelineShape shape, const StepCosts& costs,
                                      const std::vector<std::vector<ChunkInputs>>& inputs);

}  // namespace shardwise
