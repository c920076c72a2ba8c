// ModelPartition: the layers of the model, cut into the model chunks of a pipeline.
//
// Equal layers share one definition (graph, allocation script): a 126-layer model has a handful.
#pragma once

#include <deque>
#include <vector>

#include "catalog/result.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/layer_script.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {

enum class LayerRole : std::uint8_t { embedding, vision, block, head };

constexpr bool at_an_end(LayerRole role) {
  return role == LayerRole::embedding || role == LayerRole::head;
}

struct LayerDefinition {
  LayerRole role = LayerRole::block;
  BlockKind kind;
  int blocks = 1;             // more where one checkpoint spans several blocks
  bool checkpointed = false;  // the policy re-runs (part of) it
  bool trainable = true;
  std::vector<bool> chosen;  // per operator, where the policy chooses block by block; else empty
  std::vector<bool> redone;  // per operator: what the policy, not the compiler, runs again
  LayerGraph graph;
  LayerScript script;
};

struct ChunkLayer {
  const LayerDefinition* definition = nullptr;
  int first_block = 0;  // index in the model; meaningless for embedding and head
};

struct ModelChunk {
  std::vector<ChunkLayer> layers;
  int first_block = 0;
  int blocks = 0;
};

struct ModelPartition {
  std::deque<LayerDefinition> definitions;      // stable addresses
  std::vector<std::vector<ModelChunk>> stages;  // [stage][local chunk]
};

// REQUIRES a plan that plan_problems() has passed. `known`: definitions of the same workload and
// policy and of a plan that is alike to a layer (planner/search/known_layers.hpp), which outlive
// the partition: where it needs one of these it points there.
ModelPartition partition_model(const Workload& workload, const ParallelPlan& plan,
                               const PipelineSchedule& schedule, const RecomputePolicy& policy,
                               const std::deque<LayerDefinition>* known = nullptr);

// The same for who asks only what the layers weigh: no layer runs again, and scripts are empty.
ModelPartition partition_weights(const Workload& workload, const ParallelPlan& plan,
                                 const PipelineSchedule& schedule);

// Whether two chunks hold layers of the same definitions; two stages, chunk by chunk.
bool equal_layers(const std::vector<ChunkLayer>& a, const std::vector<ChunkLayer>& b);
bool equal_layers(const std::vector<ModelChunk>& a, const std::vector<ModelChunk>& b);

// Blocks per model chunk, as even as possible with the earlier chunks one larger, or as
// `layers_per_stage` says.
std::vector<int> blocks_per_chunk(int blocks, int chunks, const std::vector<int>& layers_per_stage);

}  // namespace shardwise
