// What a framework holds for a weight it trains, how ranks share it, and how the step changes it.
#pragma once

#include <cstdint>
#include <optional>

#include "catalog/dtype.hpp"
#include "catalog/framework_kinds.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// Number formats of weights.
struct FrameworkFormats {
  WeightRecipe pretrain_weights = WeightRecipe::half_with_master;
  WeightRecipe finetune_weights = WeightRecipe::half_with_master;
  DType frozen_dtype = DType::bf16;      // of base weights without a gradient, unquantised
  bool autocast = false;                 // torch.autocast over the weights' own dtype
  bool autocast_caches_weights = false;  // 16-bit copies of fp32 weights live through the step
};

// Gradients: their formats, how long they live, and how data-parallel ranks sum them.
struct FrameworkGradients {
  DType dtype = DType::fp32;         // of the accumulated gradient (where weights are 16-bit)
  std::optional<DType> dtype_fp16;   // the same where compute is fp16 (see resolved_for)
  DType reduce_dtype = DType::fp32;  // on the wire
  GradientLife life = GradientLife::per_step;
  std::optional<GradientLife> life_fp16;  // the same where compute is fp16
  bool copy_while_accumulating = false;   // 16-bit gradient beside the fp32 buffer
  GradientCopyLife copy_life = GradientCopyLife::layer;
  bool fusion = false;                    // wgrad accumulates straight into the fp32 gradient
  bool reduces_every_microbatch = false;  // gradient synchronised per microbatch (ZeRO-2/3, FSDP)
  bool pipelines_reduce_once = false;     // with stages it is not: their runtime turns it off
                                          // (torch.distributed.pipelining)
  bool accumulates_in_reduce_dtype = false;  // where only the last microbatch's are reduced: whole
                                             // gradients wait for it in `reduce_dtype` (FSDP2)
  Bytes bucket{25 << 20};                    // of one reduction
  std::optional<Bytes> bucket_stage_2;       // the same in ZeRO-2, where its config differs
  bool bucket_copies = false;                // DDP without gradient_as_bucket_view
  bool copies_into_buckets = false;   // DeepSpeed's ZeRO: gradients are copied into a bucket of one
                                      // piece, divided there, and added to a rank's part
  int reduce_buffers = 0;             // buckets kept allocated for the whole run
  bool buffers_from_stage_2 = false;  // ... where ZeRO shards gradients; at stage 1 a bucket is
                                      // flattened when the last microbatch is through
  // Whole gradients that go with the step are reduced bucket after bucket, which is one flat tensor
  // and a copy of it in `reduce_dtype`; it closes with the gradient that makes it too long.
  bool reduces_flat_buckets = false;
  // Persistent gradients are one flat tensor, cast to a narrower `reduce_dtype` as a whole.
  bool reduces_flat_gradient = false;
  bool stage_1_all_reduces = false;  // ZeRO-1 reduces whole gradients (no reduce-scatter)
  bool stage_2_all_reduces = false;  // and so does ZeRO-2, each rank keeping its part
  bool overlap_reduce = true;
  std::optional<bool> overlap_reduce_at_stage_2;  // if not as overlap_reduce
  bool overlap_reduce_at_stage_3 = true;          // ZeRO-3 reduces beside what follows
  // A reference model is wrapped as the trained one is, with gradient buffers that nobody fills.
  bool reference_has_gradients = false;
};

// ZeRO and FSDP: weights in shards, and how they are gathered.
struct FrameworkSharding {
  ShardedParameters parameters;
  bool gathers_as_stored = false;  // ZeRO-3 gathers fp32 weights in fp32, and autocast casts them
                                   // where they are used (FSDP without MixedPrecision)
  bool overlap_gather = true;
  // ZeRO-2 is FSDP that does not reshard after forward: weights lie in shards between steps.
  bool stage_2_gathers = false;
  bool bf16_shards_at_stage_0 = false;  // its bf16 optimizer shards states though ZeRO is off
  // FSDP2 wraps one rank, too: it copies fp32 weights to 16 bits unit by unit, without a gather.
  bool wraps_one_rank = false;
  bool flat_parameters_mix_frozen = false;  // FSDP1: adapters and frozen weights in one unit
  // FSDP1's hooks on units without a trained weight, which reentrant checkpoints around units call:
  // each layer's input and its gradient stay until the whole backward pass is done. Transformers
  // checkpoints inside of its layers since 4.52 and 4.53, which call none.
  bool frozen_units_keep_inputs = false;
  bool fsdp1_keeps_inputs = false;   // the same where a plan says FSDP1: rows of DeepSpeed too
  bool gathers_flat_copies = false;  // ZeRO-1 gathers stepped weights through flat copies of them
  // Checkpoints lie around the units of FSDP1 and are reentrant: the pass that computes a unit
  // again gathers it and lets it go, before backward gathers it.
  bool checkpoints_gather_again = false;
  // A save's state dict is made of whole weights, in the format in which they are stored, on every
  // GPU at once: FSDP1's by its defaults (FullStateDictConfig), which neither move it to the host
  // nor leave it to rank 0. Else it is one layer of them, or less.
  bool saves_whole = false;
  // ZeRO-3 keeps what is needed again within so many elements of modules that run before; 0: it has
  // no such rule.
  std::int64_t fetch_reuse_elements = 0;
  // ZeRO-3 fetches the weights of modules, so many elements or more in a message; 0: of a layer.
  std::int64_t fetch_elements = 0;
  bool quantized = false;  // 4-bit weights can be sharded (bf16 quant storage)
  // Their constants are sharded, gathered and offloaded with them (torchao's NF4Tensor).
  // bitsandbytes' quant_state is no parameter: it stays, whole, on every GPU.
  bool moves_constants = false;
};

// The optimizer's step, and the states that it keeps.
struct FrameworkUpdate {
  bool fused = true;      // one kernel, no temporaries
  bool foreach = true;    // otherwise: all tensors at once, with temporaries for each
                          // (PyTorch 2.0 on); else one by one, with two
  int foreach_lists = 1;  // of such temporaries: two in PyTorch 2.0
  std::optional<WrittenOptimizer> written;  // its AdamW is none of PyTorch's
  bool cpu_adam = false;         // an offloaded optimizer is its own, vectorised and in one pass
  bool states_at_start = false;  // optimizer states are made before the first step
  // ZeRO-1 steps its shard as one flat tensor: master, gradient and states are a block each, and
  // gradients of other shards go before it steps.
  bool flat_shard = false;
  // A sharded optimizer's trained weights move into one flat tensor, beside that of the gradients,
  // while they are there as they were built; those blocks go back to the allocator one by one.
  bool remaps_weights = false;
  bool clones_partition = false;  // states are one flat tensor each (DeepSpeed), with a 16-bit copy
                                  // beside the fp32 one: as the master is made, and of the gradient
                                  // while stepping
  bool fp32_gradient_at_step = false;  // whole-partition fp32 copy while stepping (DeepSpeed)
  // Beside 16-bit moments: of the masters of bf16 weights only what these lack, their lower half,
  // and moments that go to fp32 for a step, all at once.
  bool keeps_remainders = false, widens_moments = false;
  bool rounds_stochastically = false;  // what the optimizer makes of 16-bit weights: up or down by
                                       // chance, right on average
  bool clips_gradients = true;
  // The norm of each buffer of whole local gradients is read before they are reduced, and looked at
  // for NaN (Megatron Core's check_for_nan_in_grad).
  bool checks_gradients = false;
  // ZeRO takes the norm of what a rank steps tensor by tensor, each copied to fp64 before ...
  bool norm_in_double = false;
  // ... and at stages 1 and 2 looks at each for infinity and NaN, by PyTorch's operators.
  bool checks_partition = false;
  bool wide_gradient_checks_fp16 = false;  // where compute is fp16, overflow and norm are read off
                                           // fp32 and fp64 copies of each gradient in turn
  bool wide_gradient_checks = false;       // the same in every format (DeepSpeed until 2024)
};

}  // namespace shardwise
