// Bounds: what a plan takes at the least, proven without simulating it.
//
// Time. With f_c and b_c what one microbatch takes forward and backward through model chunk c at
// the least, a stage s that holds the chunks C(s) and runs m microbatches through each
//
//   T  >=  min over C(s) of sum_{c' < c} f_c'     before its first slot can have an input
//        + m sum over C(s) of (f_c + b_c)         its own passes, one after the other
//        + min over C(s) of sum_{c' < c} b_c'     after its last backward, to the first chunk
//
// for every s; the last term is left out where weight passes of their own may come last. For equal
// stages and 1F1B this is (m + p - 1)(f + b), for v chunks each m v + p - 1 of their passes: the
// bubbles of arXiv 2104.04473, equations 2 and 3. For a set of plans that share everything but
// stages and data ranks: the mean over all GPUs, batch / mbs x (f + b) x tp x cp / GPUs.
//
// Memory. All tensors that a stage holds at once, when most microbatches are in flight (at all, or
// once all gradients are there): model states, what those microbatches have saved for backward, and
// what the backward pass that follows adds in its first layer; plus the CUDA context and the
// workspaces.
//
// Both are of the predictor's own pieces, of which the forecast adds up more; sums are rounded down
// by a part in a billion, more than clocks and floating point round up.
#pragma once

#include <algorithm>
#include <vector>

#include "catalog/profile.hpp"
#include "planner/search/in_flight.hpp"
#include "planner/search/layer_bounds.hpp"
#include "planner/search/stage_alone.hpp"
#include "simulator/parameter_state.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// What is alike for all plans of one workload on one cluster.
struct BoundSite {
  const Workload& workload;
  const Cluster& cluster;
  const Profile& profile;
  const CollectiveModel& collectives;
};

// From when all gradients of a plan are there until the CPUs of the slowest node have stepped an
// offloaded optimizer: it may be added to any bound of what comes before. Nothing where a stage
// need not wait for the gradients of others.
Seconds host_step_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan);

// The same of all plans with these layers on at most `most_stages` stages.
Seconds mean_host_step_bound(const BoundSite& site, const LayerBounds& layers,
                             const ParallelPlan& plan, int most_stages);

// Of all plans with these layers and this microbatch, whatever their stages and data ranks; without
// the host's step.
Seconds mean_work_bound(const LayerBounds& layers, const ParallelPlan& plan, int batch);

// What data ranks and the host add to a pipeline at the least; alike for all schedules and all ways
// to deal layers to stages. Default: nothing.
struct DataTraffic {
  CostModel::BlockGathers gathers;  // for each pass over a chunk that begins with a block
  // Once a step: the stream reduces a block's gradients, behind all passes of the stage or from
  // when the last microbatch goes back, and then gathers its weights. Of each kind of layer, and of
  // any so many blocks; empty: nothing is known of it.
  std::vector<CostModel::LeastTraffic> of_kind, least;
  bool behind_passes = false;
  // A backward pass begins with a block's weights, which the same stream gathers: behind what the
  // last microbatch's pass before it has to reduce.
  bool holds_up = false;
  // What the host needs behind all that, to step an offloaded optimizer.
  Seconds stepped;

  // The end of a stage's step by that. `back`: so much lies before all that is reduced, `passed`:
  // the end of all passes.
  Seconds end(Seconds back, Seconds passed, const CostModel::LeastTraffic& stage) const {
    return std::max(passed, (behind_passes ? passed : back) + stage.reduced) + stage.gathered;
  }
};
DataTraffic data_traffic(const BoundSite& site, const LayerBounds& layers,
                         const ParallelPlan& plan);

// REQUIRES a legal plan. `layers`: of this plan without stages. `traffic`: of the plan.
Seconds pipeline_bound(const LayerBounds& layers, const ParallelPlan& plan,
                       const DataTraffic& traffic = {});

// The same from the plan's own costs, stage by stage: with transfers between stages, collectives
// that keep the data-parallel stream busy, and what follows the last backward.
Seconds costed_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan,
                     KnownSlots& known);

// The same with the slots of all stages run together; nothing where that is not sure to bound it.
Seconds together_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan,
                       KnownSlots& known);

// Of all schedules and all ways to deal layers to the stages of a plan: the mean over stages of
// what keeps the data-parallel stream busy, or the way from the host; and then the host itself.
Seconds stream_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan);

// Of all plans with these layers on at most `most_stages` stages, whatever they recompute: no GPU
// holds less than the mean of the model's states.
Bytes mean_states_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan,
                        int most_stages);

// Of all plans with these layers on at most `most_stages` stages: no GPU holds less than the mean
// of all of them, and no stage has less in flight than one microbatch.
Bytes mean_memory_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan,
                        int most_stages);

// Of all schedules and all ways to deal layers to the stages of a plan: the fullest stage holds at
// least the mean of them.
Bytes stage_mean_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan);

// What a stage with these states holds through a step, once it has gradients, and while its
// optimizer steps.
struct StageStateBytes {
  Bytes kept, with_gradients, at_step;
};
StageStateBytes state_bytes(const BoundSite& site, const ParallelPlan& plan,
                            const LayerState& states);

// CUDA context and workspaces, of the card that needs least.
Bytes outside_tensors(const BoundSite& site);

// What NCCL takes beside all that.
Bytes communicators_of(const BoundSite& site, const ParallelPlan& plan);

// Of each kind of layer, as the plan shards it over its data ranks; alike for all schedules and all
// ways to deal layers to stages.
std::vector<LayerState> layer_states(const BoundSite& site, const LayerBounds& layers,
                                     const ParallelPlan& plan);

// Of the fullest of the stages that tell: the ends, and the first with any layers of its kind.
// `states`: the plan's layer_states().
Bytes memory_bound(const BoundSite& site, const LayerBounds& layers, const ParallelPlan& plan,
                   InFlightCounts& counts, const std::vector<LayerState>& states);

}  // namespace shardwise
