// Model states: weights, gradients, master weights and optimizer states, counted and nothing else.
//
// Whatever else a run needs comes on top, so these bytes are a lower bound of what a GPU must hold:
// when the optimizer steps, all of them are alive at once.
#pragma once

#include "catalog/units.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Of the whole model, once.
Bytes model_states(const Workload& workload);

// What a checkpoint of the training holds, of the whole model: what is trained, its master copy and
// optimizer states; neither gradients nor weights that never change.
Bytes checkpoint_size(const Workload& workload);

// On the GPU of the fullest pipeline stage, without what the plan keeps in host RAM.
// REQUIRES a plan that plan_problems() has passed.
Bytes states_on_gpu(const Workload& workload, const ParallelPlan& plan);

}  // namespace shardwise
