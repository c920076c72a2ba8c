// Buffers beside the model that a rank keeps for the whole run, for what it sends and receives.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/memory/stage_holdings.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/parameter_state.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Bytes of each; `total` is of all layers on the rank.
std::vector<std::int64_t> run_buffers(const Workload& workload, const ParallelPlan& plan,
                                      const LayerState& total);

// Bytes of each buffer that stands from the start of a backward pass to its end: DeepSpeed's below
// stage 3.
std::vector<std::int64_t> pass_buffers(const Workload& workload, const ParallelPlan& plan,
                                       const LayerState& total);

// What a reduction that follows the last microbatch takes beside the gradients: persistent ones
// cast to what is sent, as one tensor (DeepSpeed runtime/engine.py, allreduce_bucket), or a bucket
// of ZeRO-1's (runtime/zero/stage_1_and_2.py, reduce_gradients).
std::int64_t reduced_at_end(const Workload& workload, const ParallelPlan& plan,
                            const LayerState& total);

// Elements of each bucket that whole gradients are reduced in, one after the other.
std::vector<std::int64_t> flat_buckets(const Workload& workload, const ParallelPlan& plan,
                                       const std::vector<std::vector<LayerHoldings>>& layers);

// What a pipeline stage keeps of what it has sent on for one microbatch: cut over the tensor ranks
// (DeepSpeed runtime/pipe/engine.py, is_pipe_partitioned) or not. `last` is the stage's last layer.
std::int64_t bytes_kept_of_sent(const Workload& workload, const ParallelPlan& plan,
                                const LayerDefinition& last);

// What a pipeline stage receives comes into: activations, but for the first stage's, and gradients,
// but for the last one's.
std::vector<std::int64_t> receive_buffers(const Workload& workload, const ParallelPlan& plan,
                                          const LayerDefinition& first,
                                          const LayerDefinition& last);

// What a reference model makes of a microbatch where the trained one's activations are held
// already: logits, if whole ones are made (TRL 0.24 dpo_trainer.py, get_batch_loss_metrics).
std::int64_t reference_logits(const Workload& workload, const LayerDefinition& last);

// Of the causal masks that the model's own code registers in a layer.
std::int64_t mask_bytes(const Workload& workload, const LayerDefinition& layer);

}  // namespace shardwise
