#include "simulator/gathered_layers.hpp"

#include <cstddef>
#include <cstdint>

#include "simulator/parameter_state.hpp"
#include "simulator/per_definition.hpp"

namespace shardwise {

namespace {

bool runs_again(const LayerDefinition& d) {
  for (std::size_t i = 0; i < d.redone.size(); ++i)
    if (d.redone[i] && d.script.runs_again[i]) return true;
  return false;
}

}  // namespace

// A trace ends with backward, so no stages: they hold more than one microbatch.
bool keeps_layers_gathered(const Workload& w, const ParallelPlan& p) {
  return w.framework.sharding.parameters.live_parameters && p.pipeline == 1 &&
         reshards_weights(w.framework, p);
}

// DeepSpeed @edaa722126 runtime/zero/partitioned_param_coordinator.py. Fetches run ahead until
// max_live_parameters are gathered, from the head on into backward, and pass over what is gathered;
// what they have passed over stays (fetch_sub_module, __most_recent_step_id_param_fetched_for).
// These are the last layers that are no more than that together. So does what is wanted again
// within max_reuse_distance (__params_to_release): in between lie the head and the layers behind
// twice, three times where they run again. A layer stays whole where half of it does.
std::vector<bool> layers_kept_gathered(const Workload& w, const ParallelPlan& p,
                                       const std::vector<ChunkLayer>& layers) {
  std::vector<bool> kept(layers.size());
  if (!keeps_layers_gathered(w, p)) return kept;
  const std::int64_t most = w.framework.sharding.parameters.live_parameters->value;
  std::int64_t live = 0, between = 0;
  PerDefinition<LayerState> states;
  for (std::size_t i = layers.size(); i-- > 0;) {
    const LayerDefinition& d = *layers[i].definition;
    const LayerParameters& parameters = d.graph.parameters;
    const LayerState& state = states.of(d, [&](const LayerDefinition& of) {
      return layer_state(w, p, of.graph.parameters, of.trainable);
    });
    const std::int64_t own = parameters.base() + parameters.adapter + parameters.expert_adapter;
    const int times = runs_again(d) ? 3 : 2;
    live += state.gathered;
    const bool near = between + times * own / 2 < w.framework.sharding.fetch_reuse_elements;
    kept[i] = !at_an_end(d.role) && (live <= most || near);
    between += times * own;
  }
  return kept;
}

}  // namespace shardwise
