#include "planner/forecast/model_states.hpp"

#include <algorithm>

#include "catalog/require.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

Bytes kept_on_gpu(const LayerState& s, const Offload& offload, const Framework& f) {
  const GradientLife life = f.gradients.life;
  std::int64_t bytes = s.left_by_offload(f);
  if (!offload.optimizer) bytes += s.master + s.optimizer;
  if (!offload.optimizer && life != GradientLife::in_backward) bytes += s.gradients;
  if (!offload.parameters) bytes += s.offloaded(f) + s.narrow_copies;
  return Bytes(bytes);
}

}  // namespace

Bytes states_on_gpu(const Workload& w, const ParallelPlan& plan) {
  const PipelineSchedule* schedule = find_pipeline_schedule(plan.schedule_row());
  require(schedule != nullptr, "the plan was checked");
  const ModelPartition partition = partition_weights(w, plan, *schedule);
  Bytes most;
  const LayerDefinition* last = nullptr;  // of equal layers in a row, one is looked at
  LayerState one;
  for (const auto& stage : partition.stages) {
    LayerState state;
    for (const ModelChunk& chunk : stage)
      for (const ChunkLayer& layer : chunk.layers) {
        const LayerDefinition* d = layer.definition;
        if (d != last) one = layer_state(w, plan, d->graph.parameters, d->trainable);
        last = d;
        state += one;
      }
    most = std::max(most, kept_on_gpu(state, plan.offload, w.framework));
  }
  return most;
}

Bytes checkpoint_size(const Workload& w) {
  const ParallelPlan whole;
  const PipelineSchedule* schedule = find_pipeline_schedule(whole.schedule_row());
  require(schedule != nullptr, "a plan for one GPU exists");
  const ModelPartition partition = partition_weights(w, whole, *schedule);
  std::int64_t bytes = 0;
  for (const auto& stage : partition.stages)
    for (const ModelChunk& chunk : stage)
      for (const ChunkLayer& layer : chunk.layers) {
        const LayerState s =
            layer_state(w, whole, layer.definition->graph.parameters, layer.definition->trainable);
        bytes += s.adapters + s.master + s.optimizer + s.paged + (w.trains_base() ? s.weights : 0);
      }
  return Bytes(bytes);
}

Bytes model_states(const Workload& w) { return states_on_gpu(w, ParallelPlan{}); }

}  // namespace shardwise
