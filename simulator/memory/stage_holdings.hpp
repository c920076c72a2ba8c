// What StagePlayer holds: the streams that it allocates on, a layer's long-lived tensors, and those
// of a microbatch in flight.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "simulator/graphs/operators.hpp"
#include "simulator/memory/memory_ledger.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/parameter_state.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// FSDP2 gathers and reduces on streams of their own, whose cached blocks nobody else can use.
inline constexpr StreamId gather_stream{1};
inline constexpr StreamId reduce_stream{2};
// NCCL works on a stream of its own; what it reads was allocated on the default one.
inline constexpr StreamId nccl_stream{3};

AllocatorSettings allocator_settings(const Framework& framework);

// Master, gradient and states of a rank are one flat tensor each.
inline bool steps_flat_shard(const Framework& f, const ParallelPlan& p) {
  return f.update.clones_partition || (f.update.flat_shard && p.zero_stage == 1);
}

// The buffers of one layer for one microbatch, by slot of its script.
using Slots = std::vector<Holding>;

// A limit of live parameters is DeepSpeed's, and so is its way to shard them.
inline bool deepspeed_stage_3(const Framework& f, const ParallelPlan& p) {
  return f.update.clones_partition && f.sharding.parameters.live_parameters && p.zero_stage >= 3;
}

// What framework and plan decide for all layers.
struct StageHabits {
  bool narrows_alone;  // FrameworkSharding::wraps_one_rank
  bool shards_weights, shards_gradients;
  bool reshards;  // weights, after forward
  bool reduces_every_microbatch;
  bool persistent_gradients;
  // DeepSpeed's ZeRO-3 makes one flat tensor for a rank's share of the gradients when the engine
  // starts and copies what it reduces there; it is never given back (runtime/zero/stage3.py,
  // grad_partitions_flat_buffer, 0.6.0 to edaa722126). It lies where the optimizer does.
  bool flat_gradient_shard;
  bool steps_in_backward;
  // DeepSpeed's BF16 optimizer copies the weights into one flat tensor beside them; what they leave
  // is where the 16-bit gradients of the same sizes go (runtime/bf16_optimizer.py:155-158).
  bool flattens_weights;
  // FrameworkUpdate::remaps_weights, of an optimizer that is sharded; over one rank as well.
  bool remaps_weights;
  bool steps_run;  // ... whose shards are one run of the flat buffer each: it has no buckets

  StageHabits(const Framework& f, const ParallelPlan& p)
      : narrows_alone(f.sharding.wraps_one_rank && p.shard_ranks() == 1),
        shards_weights(narrows_alone || (shardwise::shards_weights(f, p) &&
                                         (p.shard_ranks() > 1 || f.update.clones_partition))),
        // DeepSpeed's partition of one rank, which is all of them, lies where the optimizer does
        // (runtime/zero/stage3.py, self.device; stage_1_and_2.py, cpu_offload).
        shards_gradients(p.zero_stage >= 2 && (p.shard_ranks() > 1 ||
                                               (f.update.clones_partition &&
                                                (p.offload.optimizer || deepspeed_stage_3(f, p))))),
        reshards(!f.sharding.parameters.saved_for_backward &&
                 (reshards_weights(f, p) ||
                  (narrows_alone && f.sharding.parameters.reshard_after_forward))),
        reduces_every_microbatch(shardwise::reduces_every_microbatch(f, p)),
        persistent_gradients(f.gradients.life == GradientLife::persistent),
        flat_gradient_shard(deepspeed_stage_3(f, p) && !p.offload.optimizer &&
                            !persistent_gradients),
        steps_in_backward(f.gradients.life == GradientLife::in_backward),
        flattens_weights(f.update.clones_partition && f.gradients.copy_while_accumulating &&
                         persistent_gradients),
        remaps_weights(f.update.remaps_weights && persistent_gradients &&
                       (p.zero_stage == 1 || (p.zero_stage == 0 && f.defaults.zero_stage == 1 &&
                                              p.data * p.context == 1))),
        steps_run(remaps_weights && !f.gradients.overlap_reduce && p.shard_ranks() > 1) {}
};

// One microbatch in one model chunk, from its forward to the end of its backward.
struct InFlight {
  std::vector<Slots> layers;
  Holding carried;  // between layers: the activation, later its gradient
  Holding output;   // what was sent to the next stage
};

// What one layer holds beyond a microbatch.
struct LayerHoldings {
  LayerState state;
  const LayerGraph* graph = nullptr;
  LayerRole role = LayerRole::block;
  StoredParameter trained;  // how each parameter that has a gradient is stored
  Holding gathered;         // unsharded weights
  Holding buffer;           // the all-gather's output before it is copied out
  Holding autocast;         // 16-bit copies of fp32 weights
  std::vector<Holding> unsharded_gradients;
  Holding sharded_gradient;
  bool has_gradient = false;  // made by an earlier microbatch of this step
  bool copied = false;        // 16-bit copies of its gradients have been made in this run
};

// `bytes` of a layer, shared among its matrices as their elements are: each(bytes of a matrix).
// What belongs to none comes last.
template <class Each>
void by_matrix(const LayerHoldings& h, std::int64_t bytes, const Each& each) {
  if (bytes == 0) return;
  std::int64_t trained = 0, left = bytes;
  for (const Operator& op : h.graph->operators) trained += op.weight_gradient_elements;
  for (const Operator& op : h.graph->operators) {
    if (op.weight_gradient_elements <= 0) continue;
    const double share =
        static_cast<double>(op.weight_gradient_elements) / static_cast<double>(trained);
    const auto part = static_cast<std::int64_t>(share * static_cast<double>(bytes)) / 4 * 4;
    each(std::min(part, left));
    left -= std::min(part, left);
  }
  each(left);
}

// `bytes` of states of `stepped` elements where a rank's shard is one run of the flat buffer, and
// so few whole parameters: each(bytes of a matrix), of the first rank, whose are the last ones
// (Megatron-LM core_v0.12.0 distributed/param_and_grad_buffer.py lays them out backwards).
template <class Each>
void by_run(const std::vector<std::vector<LayerHoldings>>& layers, std::int64_t bytes,
            std::int64_t stepped, const Each& each) {
  if (bytes <= 0 || stepped <= 0) return;
  const double per_element = static_cast<double>(bytes) / static_cast<double>(stepped);
  std::int64_t left = bytes;
  for (auto chunk = layers.rbegin(); chunk != layers.rend(); ++chunk)
    for (auto h = chunk->rbegin(); h != chunk->rend(); ++h) {
      const std::vector<Operator>& operators = h->graph->operators;
      for (auto op = operators.rbegin(); op != operators.rend() && left > 0; ++op) {
        if (op->weight_gradient_elements <= 0) continue;
        const double whole = per_element * static_cast<double>(op->weight_gradient_elements);
        const auto part = std::min(left, static_cast<std::int64_t>(whole) / 4 * 4);
        each(part);
        left -= part;
      }
    }
  if (left > 0) each(left);
}

// Parameters of a layer that have gradients: its own, or those of adapters.
inline StoredParameter stored_where_trained(const Workload& w, bool layer_trains) {
  const bool adapter = !layer_trains || row(w.method).adapter;
  return adapter ? stored_adapter(w) : stored_base(w, layer_trains, true);
}

inline StoredParameter stored_where_trained(const Workload& w, const LayerDefinition& d) {
  const bool tables = d.trainable && d.graph.parameters.table > 0;
  return tables ? stored_table(w, true) : stored_where_trained(w, d.trainable);
}

// A flat parameter that mixes frozen and trained weights has a gradient for all of them.
inline bool gradients_of_frozen(const Framework& f, const StageHabits& habits,
                                const LayerDefinition& d) {
  return f.sharding.flat_parameters_mix_frozen && habits.shards_weights && !d.trainable &&
         d.graph.parameters.adapter > 0;
}

// Entries of the launch queue that the CPU makes for these.
// A collective is its kernel, an event and a wait for it that tie NCCL's stream to the default one
// and another such pair back (PyTorch v2.1.0 ProcessGroupNCCL.cpp: syncStreams, ncclEndEvents_ and
// WorkNCCL::synchronizeStream).
inline constexpr int entries_per_collective = 5;
inline int launches(const std::vector<Kernel>& kernels) {
  int n = 0;
  for (const Kernel& k : kernels) {
    const auto* memory = std::get_if<MemoryWork>(&k);
    if (std::holds_alternative<CommWork>(k))
      n += entries_per_collective;
    else if (!std::holds_alternative<ReadBack>(k))
      n += memory == nullptr ? 1 : memory->launches;
  }
  return n;
}

// Parameters of a rank that have gradients.
inline int trained_tensors(const std::vector<std::vector<LayerHoldings>>& layers) {
  int n = 0;
  for (const auto& chunk : layers)
    for (const LayerHoldings& h : chunk) n += trained_tensors(*h.graph);
  return n;
}

// Of those, the one with the largest gradient of one microbatch.
inline std::int64_t largest_gradient_bytes(const std::vector<std::vector<LayerHoldings>>& layers) {
  std::int64_t most = 0;
  for (const auto& chunk : layers)
    for (const LayerHoldings& h : chunk)
      for (const Operator& op : h.graph->operators) {
        const auto elements = static_cast<double>(op.weight_gradient_elements);
        most = std::max(most, static_cast<std::int64_t>(elements * h.trained.raw_gradient));
      }
  return most;
}

// What a step launches for one parameter after the other: its norm and what clips it, and the
// stepped weight in 16 bits (nanotron @67c5ebb6 optim/clip_grads.py, gradient_accumulator.py). A
// fused step itself is a few launches for all.
inline int kernels_per_stepped_parameter(const Workload& w) {
  const bool narrows = w.weights() == WeightRecipe::half_with_master;
  return (w.framework.update.clips_gradients ? 2 : 0) + (narrows ? 1 : 0);
}

}  // namespace shardwise
