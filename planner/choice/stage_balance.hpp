// Which pipeline stage holds how many layers, where nobody says: a habit of each framework.
//
//   even                the same number each, the first L mod p stages one more
//   ends_as_layers      (L + 2) / p each, one less at both ends, where L / p is not whole and
//                       (L + 2) / p is: embedding and head stand for a layer (Megatron Core,
//                       account_for_embedding_in_pipeline_split). With k predicted depths all
//                       stages but the last get (L + k + 1) / p, rounded up, and the first what is
//                       missing (Megatron-Bridge recipes/deepseek/h100/deepseek_v3.py, layout_map,
//                       and "Et|(tt|)*30mL" of its release 25.09)
//   head_by_parameters  layers and head in order; with c_i the parameters of the first i of them
//                       and C of all, stage s closes with the first one for which
//                       c_i > C (s + 1) / p                       (nanotron models/base.py)
//   modules_in_turn     embedding, L layers, last norm and head are M modules in order: M / p each,
//                       the first M mod p stages one more (Aleph-Alpha/scaling @737f8558
//                       core/nn/parallel_module/pipeline_partitioning.py, pipe_partition_uniform)
#pragma once

#include <vector>

#include "catalog/cluster.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Layers per model chunk (`chunks` is pipeline x chunks per stage), as ParallelPlan takes them:
// empty where they are dealt evenly. Only the last chunk, which has the head, may get none.
std::vector<int> usual_layers_per_stage(const Workload& workload, int chunks);

// Layers per stage on unequal GPUs: each further layer goes to the stage that would be done with
// its layers first, by the dense rate of its slowest GPU. Empty where all stages are equally fast,
// or the plan has several chunks per stage. REQUIRES a plan that multiplies out to the cluster.
std::vector<int> layers_by_speed(const Workload& workload, const ParallelPlan& plan,
                                 const Cluster& cluster);

}  // namespace shardwise
