#include "simulator/model_partition.hpp"

#include <algorithm>
#include <utility>

#include "simulator/graphs/vision_graph.hpp"
#include "simulator/tied_tables.hpp"

namespace shardwise {
namespace {

enum class Scripts { written, left_out };

RecomputePolicy no_recompute() { return {&recompute_rows().front(), 1, 1 << 30}; }

class Partitioner {
 public:
  Partitioner(const Workload& w, const ParallelPlan& plan, const RecomputePolicy& policy,
              Scripts scripts, std::deque<LayerDefinition>& definitions,
              const std::deque<LayerDefinition>* known)
      : w_(w),
        plan_(plan),
        policy_(policy),
        scripts_(scripts),
        definitions_(definitions),
        known_(known) {}

  const LayerDefinition* embedding() {
    return define(LayerRole::embedding, {}, 1, false, {},
                  [&] { return embedding_graph(w_, plan_); });
  }
  const LayerDefinition* vision() {
    BlockKind frozen;
    frozen.trainable = false;
    return define(LayerRole::vision, frozen, 1, false, {}, [&] { return vision_graph(w_, plan_); });
  }
  const LayerDefinition* head(bool tied_here) {
    return define(LayerRole::head, {}, 1, false, {},
                  [&] { return head_graph(w_, plan_, tied_here); });
  }
  const LayerDefinition* block(BlockKind kind, int blocks, bool checkpointed,
                               const std::vector<bool>& chosen) {
    // Most blocks are like the one before.
    if (chosen.empty() && last_block_ != nullptr && last_block_->kind == kind &&
        last_block_->blocks == blocks && last_block_->checkpointed == checkpointed)
      return last_block_;
    const LayerDefinition* d = define(LayerRole::block, kind, blocks, checkpointed, chosen, [&] {
      LayerGraph all = block_graph(w_, plan_, kind);
      for (int i = 1; i < blocks; ++i) all = joined(std::move(all), block_graph(w_, plan_, kind));
      return all;
    });
    last_block_ = chosen.empty() ? d : nullptr;
    return d;
  }

  BlockKind kind_of(int layer) const {
    BlockKind kind;
    kind.experts = w_.model.moe && w_.model.is_moe_layer(layer);
    kind.trainable = layer >= w_.frozen_layers;
    kind.mixer = w_.model.mixer(layer);
    kind.local_attention = w_.model.sees_window(layer);
    kind.double_wide_mlp = w_.model.mlp_width(layer) != w_.model.ffn;
    kind.cuts_gate = w_.model.altup && layer < w_.model.altup->cut_gates;
    kind.indexes_tokens = w_.model.indexes_tokens(layer);
    kind.in_16_bits =
        w_.compute == DType::nvfp4 && layer >= w_.model.layers - w_.model.beside_nvfp4.last_layers;
    if (w_.model.shares_keys(layer)) kind.keys = KeySource::shared;
    if (w_.model.lends_keys(layer)) kind.keys = KeySource::lent;
    return kind;
  }

 private:
  template <class Build>
  const LayerDefinition* define(LayerRole role, BlockKind kind, int blocks, bool checkpointed,
                                const std::vector<bool>& chosen, Build build) {
    const auto same = [&](const LayerDefinition& d) {
      return d.role == role && d.kind == kind && d.blocks == blocks &&
             d.checkpointed == checkpointed && d.chosen == chosen;
    };
    const auto here = std::find_if(definitions_.begin(), definitions_.end(), same);
    if (here != definitions_.end()) return &*here;
    // The head of a tied model is another one where it is on the embedding's stage.
    if (known_ != nullptr && !(role == LayerRole::head && w_.model.tied_embeddings)) {
      const auto there = std::find_if(known_->begin(), known_->end(), same);
      if (there != known_->end()) return &*there;
    }
    LayerDefinition d;
    d.role = role;
    d.kind = kind;
    d.blocks = blocks;
    d.checkpointed = checkpointed;
    d.trainable = (w_.trains_base() && kind.trainable) ||
                  (role == LayerRole::embedding && w_.trains_embedding()) ||
                  (role == LayerRole::head && w_.trains_head());
    d.graph = build();
    d.chosen = chosen;
    for (std::size_t i = 0; i < d.graph.operators.size(); ++i)
      d.redone.push_back(!chosen.empty() ? chosen[i]
                                         : checkpointed && policy_.runs_again(d.graph, i));
    if (scripts_ == Scripts::written) d.script = layer_script(d.graph, options(d));
    definitions_.push_back(std::move(d));
    return &definitions_.back();
  }

  ScriptOptions options(const LayerDefinition& d) const {
    ScriptOptions o;
    const bool compiled = w_.framework.layers.kernels == KernelStyle::compiled;
    o.runs_again = operators_run_again(d.graph, d.checkpointed ? policy_ : no_recompute(),
                                       compiled && d.role == LayerRole::block);
    for (std::size_t i = 0; i < d.chosen.size(); ++i)
      o.runs_again[i] = o.runs_again[i] || d.chosen[i];
    o.whole_block = d.checkpointed && policy_.row->whole_block;
    o.keeps_results = d.checkpointed && policy_.row->keeps_results;
    o.caches_results = d.checkpointed && policy_.row->caches && !compiled;
    o.stops_early = w_.framework.recompute.stops_early;
    return o;
  }

  const Workload& w_;
  const ParallelPlan& plan_;
  const RecomputePolicy& policy_;
  const Scripts scripts_;
  std::deque<LayerDefinition>& definitions_;
  const std::deque<LayerDefinition>* known_;
  const LayerDefinition* last_block_ = nullptr;  // where nothing was chosen for it alone
};

// What is chosen for one block of a stage, if anything.
const std::vector<bool>& chosen_for(const RecomputePolicy& policy, int stage, int block) {
  static const std::vector<bool> nothing;
  if (!policy.chosen) return nothing;
  return policy.chosen->again[static_cast<std::size_t>(stage)][static_cast<std::size_t>(block)];
}

// Where the blocks of a chunk lie in their stage.
struct StagePlace {
  int stage = 0;
  int blocks_before = 0;  // in earlier chunks of the stage
};

// Appends `count` blocks from `first`, grouped under shared checkpoints where the policy says so.
void add_blocks(Partitioner& make, const RecomputePolicy& policy, int first, int count,
                StagePlace place, ModelChunk& chunk) {
  chunk.layers.reserve(chunk.layers.size() + static_cast<std::size_t>(count) + 1);  // and the head
  int i = 0;
  while (i < count) {
    const BlockKind kind = make.kind_of(first + i);
    const bool checkpointed = i < policy.checkpointed_blocks && i % policy.stride == 0;
    int group = 1;
    while (checkpointed && group < policy.blocks_per_checkpoint && i + group < count &&
           make.kind_of(first + i + group) == kind)
      ++group;
    const std::vector<bool>& chosen = chosen_for(policy, place.stage, place.blocks_before + i);
    chunk.layers.push_back({make.block(kind, group, checkpointed, chosen), first + i});
    i += group;
  }
}

ModelPartition partitioned(const Workload& workload, const ParallelPlan& plan,
                           const PipelineSchedule& schedule, const RecomputePolicy& policy,
                           Scripts scripts, const std::deque<LayerDefinition>* known) {
  ModelPartition partition;
  Partitioner make(workload, plan, policy, scripts, partition.definitions, known);
  const PipelineShape shape{plan.pipeline, plan.chunks, plan.microbatches};
  const int chunks = schedule.model_chunks(shape);
  const std::vector<int> share =
      blocks_per_chunk(workload.model.layers, chunks, plan.layers_per_stage);
  std::vector<int> first(static_cast<std::size_t>(chunks), 0);
  for (std::size_t c = 1; c < first.size(); ++c) first[c] = first[c - 1] + share[c - 1];

  const bool tied_here = shares_table(workload) && chunks == 1;
  partition.stages.reserve(static_cast<std::size_t>(plan.pipeline));
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    std::vector<ModelChunk>& local = partition.stages.emplace_back();
    local.reserve(static_cast<std::size_t>(plan.chunks));
    StagePlace place{stage, 0};
    for (int k = 0; k < plan.chunks; ++k) {
      const int c = schedule.model_chunk(shape, stage, k);
      ModelChunk& chunk = local.emplace_back();
      chunk.first_block = first[static_cast<std::size_t>(c)];
      chunk.blocks = share[static_cast<std::size_t>(c)];
      if (c == 0) chunk.layers.push_back({make.embedding(), 0});
      if (c == 0 && workload.model.vision) chunk.layers.push_back({make.vision(), 0});
      add_blocks(make, policy, chunk.first_block, chunk.blocks, place, chunk);
      place.blocks_before += chunk.blocks;
      if (c == chunks - 1) chunk.layers.push_back({make.head(tied_here), workload.model.layers});
    }
  }
  return partition;
}

}  // namespace

std::vector<int> blocks_per_chunk(int blocks, int chunks,
                                  const std::vector<int>& layers_per_stage) {
  if (static_cast<int>(layers_per_stage.size()) == chunks) return layers_per_stage;
  std::vector<int> share(static_cast<std::size_t>(chunks), blocks / chunks);
  for (int i = 0; i < blocks % chunks; ++i) ++share[static_cast<std::size_t>(i)];
  return share;
}

ModelPartition partition_model(const Workload& workload, const ParallelPlan& plan,
                               const PipelineSchedule& schedule, const RecomputePolicy& policy,
                               const std::deque<LayerDefinition>* known) {
  const bool unheard =
      policy.row->whole_block && workload.model.mamba && !workload.framework.recompute.hybrids;
  return partitioned(workload, plan, schedule, unheard ? no_recompute() : policy, Scripts::written,
                     known);
}

ModelPartition partition_weights(const Workload& workload, const ParallelPlan& plan,
                                 const PipelineSchedule& schedule) {
  return partitioned(workload, plan, schedule, no_recompute(), Scripts::left_out, nullptr);
}

bool equal_layers(const std::vector<ChunkLayer>& a, const std::vector<ChunkLayer>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const ChunkLayer& x, const ChunkLayer& y) { return x.definition == y.definition; });
}

bool equal_layers(const std::vector<ModelChunk>& a, const std::vector<ModelChunk>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const ModelChunk& x, const ModelChunk& y) { return equal_layers(x.layers, y.layers); });
}

}  // namespace shardwise
