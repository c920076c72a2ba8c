// LayerScript: the allocation stream of one layer, derived from the liveness of its tensors.
//
// Forward:   an operator's outputs are allocated, it runs, and a tensor is released after its
//            last reader unless backward needs it.
// Recompute: operators that run again re-create what was not kept.
// Backward:  in reverse order; the gradient of an input is allocated, gradients that meet are
//            summed, the gradient of an output and every saved tensor are released after their
//            last use.
//
// A layer's input belongs to the layer before (its output); the gradient of the output comes from
// the layer after. Slots number the buffers of one (layer, microbatch).
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/graphs/operators.hpp"

namespace shardwise {

enum class EventKind : std::uint8_t {
  allocate,
  release,
  release_read,     // released while a collective may still read it on a stream of its own
  hold,             // released, but the model's output of this microbatch holds it
  release_later,    // the same after backward
  end_output,       // of the microbatch before: what it still holds goes
  weight_gradient,  // `bytes` holds elements: the caller knows where gradients live
  stored_gradient,  // the same of Operator::stored_gradient
};

struct MemoryEvent {
  EventKind kind = EventKind::allocate;
  MemoryCategory category = MemoryCategory::temporaries;
  std::int32_t slot = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const MemoryEvent&, const MemoryEvent&) = default;
};

struct LayerScript {
  std::vector<MemoryEvent> forward, recompute, backward;
  std::int32_t slots = 0;
  std::int32_t input_slot = 0, output_slot = 0;
  // Gradient buffers: the one that arrives, and the one that the layer before takes over.
  // They are the same slot where the layer passes its gradient through.
  std::int32_t output_gradient_slot = 0, input_gradient_slot = 0;
  std::vector<bool> runs_again;  // per operator, after dropping what nothing needs
  std::int64_t saved_bytes = 0;  // kept from forward to backward, the input included
  std::int64_t saved_statistics_bytes = 0;
};

struct ScriptOptions {
  std::vector<bool> runs_again;  // per operator, as the policy says
  bool whole_block = false;      // re-runs everything, needed or not (unless stops_early)
  bool stops_early = false;
  bool keeps_results = false;   // what attention made stays where operators outside save it
  bool caches_results = false;  // matmuls, attention and reductions outside the re-run keep what
                                // they made, whether backward reads it or not (eager selective
                                // checkpoints, torch/utils/checkpoint.py _CachingTorchDispatchMode)
};

LayerScript layer_script(const LayerGraph& graph, const ScriptOptions& options);

// Two layers as one (a checkpoint over several blocks).
LayerGraph joined(LayerGraph first, const LayerGraph& second);

}  // namespace shardwise
