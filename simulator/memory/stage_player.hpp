// StagePlayer: one rank's tensors through training steps, allocation by allocation.
//
// What memory_play plays with: the model states that stay, then per pipeline slot the layers'
// scripts, gathered weights, gradients and their reductions, and what the optimizer step takes.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "simulator/memory/activation_offload.hpp"
#include "simulator/memory/kept_inputs.hpp"
#include "simulator/memory/memory_play.hpp"
#include "simulator/memory/optimizer_memory.hpp"
#include "simulator/memory/overlapped_nodes.hpp"
#include "simulator/memory/pass_buckets.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "simulator/memory/shard_bucket.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "simulator/memory/stream_lag.hpp"

namespace shardwise {

class StagePlayer {
  using enum MemoryCategory;

 public:
  StagePlayer(const Workload& w, const ParallelPlan& plan, const std::vector<ModelChunk>& chunks,
              const ContextCalibration& calibration, std::optional<Bytes> capacity,
              const PlayVariation& variation = {});
  void play_step(const std::vector<Slot>& order);

  // Goes on with the same model at another sequence length. REQUIRES equal layers.
  void switch_to(const std::vector<ModelChunk>& chunks) { chunks_ = &chunks; }
  void record_to(std::vector<MemoryMoment>& moments) { record_ = &moments; }

  MemoryLedger& ledger() { return ledger_; }
  const LayerState& state() const { return total_; }
  Bytes reserved_at_step() const { return reserved_at_step_; }
  // Whether more than anybody asks for has been allocated.
  bool given_up() { return given_up_ = given_up_ || (most_ && ledger_.most_allocated() > *most_); }
  // Whether the capacity has been raised so far that nobody asks for more.
  bool raised_enough() const { return raised_enough_ && *ledger_.capacity() >= *raised_enough_; }
  Bytes most_on_host() const { return offload_.most_on_host(); }

 private:
  LayerHoldings& holdings(std::size_t chunk, std::size_t layer) { return layers_[chunk][layer]; }
  // Without a reduction per microbatch (no_sync), gradients stay whole until the last one.
  bool reduces_now() const;
  void load_chunk(std::size_t c);
  void mark(WorkKind pass, const Slot& slot, std::size_t layer);
  // Flat partitions are one tensor each; otherwise every layer's parameters have their own.
  void load_masters();
  std::int64_t remapped_bytes(const LayerHoldings& h) const;
  bool remaps_weights() const;
  void widen_tables();
  void keep(std::int64_t bytes, MemoryCategory category);
  // Unsharded weights of layers [i, i + ahead] in the direction of travel; earlier ones go.
  void gather(std::size_t c, std::size_t i, int direction, double window);

  // FSDP2 gathers a unit into a buffer of another stream, and copies it out. In a forward pass the
  // buffer stays until the next unit is gathered, of the last one until the pass is through; in a
  // backward pass the next unit's is made ahead, and each goes when it is copied (PyTorch 2.15
  // torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather;
  // _fsdp_param_group.py, wait_for_unshard). No activation can take its place in the cache.
  void copy_out(std::size_t c, std::size_t i, bool forward);
  // Whether a limit of bytes that are gathered, `live` of which are, lies within this layer.
  static bool reaches_limit(std::int64_t live, std::int64_t most, const LayerHoldings& h);

  // FSDP2 makes the reduce-scatter's output, which is the gradient, on that collective's stream
  // (_fsdp_collectives.py, foreach_reduce); its input on the default one.
  StreamId reduced_on() const {
    return f_.sharding.parameters.copy_out ? reduce_stream : StreamId{};
  }

  bool stays_gathered(std::size_t c, std::size_t i) const;
  void advance(int kernels);
  void issue_forward(const Operator& op);
  void issue_forward(const LayerDefinition& d);
  void issue_again(const LayerDefinition& d);
  void issue_backward(const LayerDefinition& d);
  // Receiving from another stage, the CPU reads the shape of what comes off the GPU.
  void receive();

  // `handed_on`: the slot that the next layer takes over as its input.
  void run(const std::vector<MemoryEvent>& events, Slots& slots, std::size_t c, std::size_t i,
           std::int32_t handed_on = -1);
  InFlight& in_flight(const Slot& slot) { return flights_[{slot.microbatch, slot.chunk}]; }

  void forward(const Slot& slot);

  // A pipeline brings the activations of the next backward slot back one backward ahead.
  void fetch_next_backward(const std::vector<Slot>& order, std::size_t at);

  // One layer's tensors go together, or a whole chunk's where there is a pipeline.
  void send_activations(const Slot& slot, std::size_t layer);
  void fetch_activations(const Slot& slot, std::size_t layer);
  void cache_autocast(std::size_t c, std::size_t i);
  // The cache goes with the autocast region; a checkpoint has saved none of the copies.
  void leave_autocast(std::size_t c);
  void backward(const Slot& slot);

  // A weight gradient of `elements` has just been made.
  void make_gradient(std::int64_t elements, std::size_t c, std::size_t i, bool stored);
  void fill_shard_bucket(std::int64_t elements, std::size_t c, std::size_t i);
  void hold_tied(std::size_t c);
  void place_gradient(std::int64_t elements, std::int64_t raw, LayerHoldings& h);
  // DeepSpeed's ZeRO-2 sends each gradient to the host's optimizer by itself, through a buffer as
  // long as the largest one, after it has taken its norm, of a copy of 8 bytes, and looked for an
  // overflow: fp32, three flags, and these as fp32 (@edaa722126 runtime/zero/stage_1_and_2.py:591,
  // 1575-1588, 1661-1664 and 2485-2491).
  bool copies_to_host() const;
  void inspect_offloaded(std::int64_t elements);
  void release_copies(std::size_t c);
  // Each 16-bit gradient goes into the wider one through a copy in that one's format, in turn
  // (DeepSpeed runtime/bf16_optimizer.py, update_hp_grads); the largest is what the allocator sees.
  void widen_copies();

  // A 16-bit gradient that is added into a persistent buffer: at once, or when the layer is done.
  void keep_or_pass(std::int64_t raw, LayerHoldings& h);
  void finish_layer_backward(std::size_t c, std::size_t i);
  bool in_root(std::size_t c, std::size_t i) const;  // a unit of the framework's with the other end
  void finish_root(std::size_t c);

  // Unsharded gradients are copied into the reduce-scatter's input, which lives until the next
  // layer's; the result joins this rank's shard.
  void reduce_layer(LayerHoldings& h);
  std::int64_t reduced_bytes(const LayerHoldings& h) const;
  void close_all(std::vector<Holding>& list);
  void reduce_buckets();
  void step_optimizer();

  const Workload& w_;
  const Framework& f_;
  const ParallelPlan& plan_;
  const StageHabits habits_;
  const bool fuses_gradients_;  // products add theirs into buffers that stay: nothing is made
  const EmbeddingGathers embedding_;
  const std::vector<ModelChunk>* chunks_;  // of the sequence length that is played
  MemoryLedger ledger_;
  ActivationOffload offload_;
  StreamLag lag_;
  std::optional<Bytes> most_, raised_enough_;
  std::vector<Holding> fixed_;
  std::vector<Holding> held_;         // by the model's output of this microbatch,
  std::vector<Holding> left_;         // and by the one before, which the training loop still has
  std::vector<Holding> added_later_;  // gradients that a compiled backward pass returns at its end
  std::vector<Holding> originals_;    // weights as built, until they are flattened
  std::int64_t remapped_ = 0;         // bytes of those
  std::vector<std::vector<LayerHoldings>> layers_;  // [chunk][layer]
  std::vector<std::vector<bool>> kept_gathered_;    // the same: from forward to backward
  std::map<std::pair<int, int>, InFlight> flights_;
  Holding tied_;  // the head's part of a tied table's gradient, of so many elements
  std::int64_t tied_elements_ = 0;
  Holding reduce_input_;
  Holding gathered_part_;        // of the layer that a limit of gathered bytes cuts
  Holding copied_out_;           // the buffer of the unit that a forward pass gathered last
  std::int64_t root_input_ = 0;  // of the root's reduction, while it is made
  KeptInputs kept_;
  OverlappedNodes nodes_;
  PassBuckets buckets_;
  ShardBucket shard_bucket_;
  LayerState total_;
  OptimizerMemory optimizer_;
  std::int64_t largest_gradient_ = 0;  // elements of the largest weight gradient
  Bytes reserved_at_step_;
  std::int64_t retries_ = 0;  // of the allocator, that the lag knows of
  bool given_up_ = false, last_microbatch_ = true;
  std::vector<MemoryMoment>* record_ = nullptr;
};

}  // namespace shardwise
