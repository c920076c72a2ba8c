// What is there before a stage's first step: member functions of StagePlayer.
#include <algorithm>
#include <utility>

#include "simulator/gathered_layers.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "simulator/memory/stage_player.hpp"
#include "simulator/per_definition.hpp"

namespace shardwise {

void StagePlayer::load_chunk(std::size_t c) {
  layers_.emplace_back();
  kept_gathered_.push_back(layers_kept_gathered(w_, plan_, (*chunks_)[c].layers));
  PerDefinition<LayerState> states;
  for (const ChunkLayer& layer : (*chunks_)[c].layers) {
    const LayerDefinition* d = layer.definition;
    LayerHoldings h;
    h.state = states.of(*d, [&](const LayerDefinition& of) {
      return layer_state(w_, plan_, of.graph.parameters, of.trainable);
    });
    h.graph = &d->graph;
    h.role = d->role;
    h.trained = stored_where_trained(w_, *d);
    total_ += h.state;
    if (!plan_.offload.parameters) {
      const std::int64_t remapped = remapped_bytes(h);
      keep(h.state.weights - remapped, weights);
      if (habits_.flattens_weights)
        originals_.push_back(ledger_.open(remapped, weights));
      else
        by_matrix(h, remapped, [&](std::int64_t bytes) {
          if (bytes > 0) originals_.push_back(ledger_.open(bytes, weights));
        });
      remapped_ += remapped;
      if (f_.sharding.moves_constants) keep(h.state.quantization, quantization);
      if (!remaps_weights()) keep(h.state.narrow_copies, weights);
      keep(h.state.adapters, adapters);
    }
    keep(h.state.left_by_offload(f_), quantization);
    if (habits_.persistent_gradients && !habits_.flattens_weights && !remaps_weights())
      keep(h.state.gradients, gradients);
    keep(mask_bytes(w_, *d), weights);
    layers_.back().push_back(std::move(h));
  }
}

// Of a layer's weights: those that are trained, without a frozen copy to compare with.
std::int64_t StagePlayer::remapped_bytes(const LayerHoldings& h) const {
  if (habits_.flattens_weights) return h.state.weights;
  if (!remaps_weights() || h.trained.gradient <= 0) return 0;
  const double trained = static_cast<double>(h.state.gradients) / h.trained.gradient;
  return std::min(h.state.weights, static_cast<std::int64_t>(trained * h.trained.weight));
}

// Adapters are too small to be seen.
bool StagePlayer::remaps_weights() const {
  return habits_.remaps_weights && w_.trains_base() && !plan_.offload.parameters;
}

void StagePlayer::load_masters() {
  keep(remapped_, weights);
  if (remaps_weights()) keep(total_.gradients, gradients);
  close_all(originals_);
  // Made by the first products, which come later (Transformer Engine's _fp8_workspaces).
  if (remaps_weights()) keep(total_.narrow_copies, weights);
  if (habits_.flattens_weights) keep(total_.gradients, gradients);
  if (plan_.offload.optimizer) return;
  if (steps_flat_shard(f_, plan_) && total_.master > 0) {
    Holding clone = ledger_.open(total_.master / 2, master_weights);
    keep(total_.master, master_weights);
    return ledger_.close(clone);
  }
  const auto keep_master = [&](std::int64_t bytes) { keep(bytes, master_weights); };
  if (remaps_weights() && habits_.steps_run)
    return by_run(layers_, total_.master, total_.stepped_elements, keep_master);
  for (const auto& chunk : layers_)
    for (const LayerHoldings& h : chunk)
      remaps_weights() ? by_matrix(h, h.state.master, keep_master) : keep_master(h.state.master);
}

// FrameworkLoading::widens_tables. Where a table's 16 bits were is too small for another's fp32,
// so that 4 bytes of each value are reserved; what is allocated counts 2 of the first table too
// many.
void StagePlayer::widen_tables() {
  std::vector<Holding> wide;
  for (const ModelChunk& chunk : *chunks_)
    for (const ChunkLayer& layer : chunk.layers) {
      if (!at_an_end(layer.definition->role)) continue;
      const LayerParameters& p = layer.definition->graph.parameters;
      wide.push_back(ledger_.open(4 * (p.other + p.table), temporaries));
    }
  close_all(wide);
}

void StagePlayer::keep(std::int64_t bytes, MemoryCategory category) {
  if (bytes > 0) fixed_.push_back(ledger_.open(bytes, category));
}

}  // namespace shardwise
