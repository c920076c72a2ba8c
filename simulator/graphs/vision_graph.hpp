// The vision tower of a model as one layer, between its embedding and its first block: the patches
// of the images of a microbatch go through it, and what comes out takes the place of the image
// tokens' embeddings.
//
// It is frozen, as LLaMA-Factory (freeze_vision_tower) and ms-swift (freeze_vit) have it by
// default: no gradient reaches it, so nothing is kept for backward. Every tensor rank runs all of
// it.
#pragma once

#include "simulator/graphs/operators.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// REQUIRES workload.model.vision. Without images the tower's weights are there and nothing runs.
LayerGraph vision_graph(const Workload& workload, const ParallelPlan& plan);

}  // namespace shardwise
