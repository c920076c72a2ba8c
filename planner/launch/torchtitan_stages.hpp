// How torchtitan deals layers to pipeline stages, and how a plan says it there.
//
//   neither given                        as even as possible over pp x 1 or pp x 2 stages
//   pipeline_parallel_layers_per_stage   as even as possible over ceil(layers / n) stages
//   module_fqns_per_model_part           the modules of every stage by name
//
// (torchtitan 0.2.2 distributed/pipeline_parallel.py). The first and last stage get fewer layers
// unless told not to, which is what is written here.
#pragma once

#include "planner/launch/config_entries.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/launch/plan_words.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {

void refuse_torchtitan_stages(Refusals& to, const ParallelPlan& plan, const Transformer& model);
void put_torchtitan_stages(ConfigEntries& to, const ParallelPlan& plan, const Transformer& model);
// Says vpp and layers.
void read_torchtitan_stages(PlanWords& words, const PlanFileContext& context,
                            const std::string& file);

}  // namespace shardwise
