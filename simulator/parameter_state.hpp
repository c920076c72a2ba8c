// What a rank stores per parameter: weight, gradient, master copy, optimizer state, and over how
// many ranks each is sharded.
//
// ZeRO (arXiv 1910.02054, section 5), mixed precision with AdamW, N ranks, P parameters:
//   stage 0: (2 + 2 + 12) P    1: (2 + 2) P + 12 P / N    2: 2 P + 14 P / N    3: 16 P / N
// Frameworks differ in the 2 + 2 + 12; their rows say how (catalog/framework.hpp, WeightRecipe).
#pragma once

#include "simulator/graphs/operators.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Bytes on one rank for the parameters of one layer.
struct LayerState {
  std::int64_t weights = 0;        // base weights as stored, sharded where the plan shards them
  std::int64_t quantization = 0;   // constants of quantised weights
  std::int64_t narrow_copies = 0;  // 8-bit ones kept beside weights (NarrowWeights::beside)
  std::int64_t adapters = 0;
  std::int64_t gradients = 0;  // as kept until the optimizer step
  std::int64_t master = 0;
  std::int64_t optimizer = 0;
  std::int64_t paged = 0;             // the same, in managed memory outside the allocator's sight
  std::int64_t gathered = 0;          // the whole layer, unsharded, as a kernel wants it (ZeRO-3)
  std::int64_t gathered_experts = 0;  // of these
  std::int64_t unsharded_gradients = 0;  // as backward makes them, before reduction
  std::int64_t stepped_elements = 0;     // parameters that this rank's optimizer steps

  LayerState& operator+=(const LayerState& other);
  LayerState& operator*=(std::int64_t layers);

  // Of what leaves the GPU where weights are offloaded, and of what stays there nevertheless
  // (FrameworkSharding::moves_constants).
  std::int64_t offloaded(const Framework& f) const {
    return weights + adapters + (f.sharding.moves_constants ? quantization : 0);
  }
  std::int64_t left_by_offload(const Framework& f) const {
    return f.sharding.moves_constants ? 0 : quantization;
  }
};

// Bytes per parameter of one kind.
struct StoredParameter {
  double weight = 2, gradient = 0, master = 0, optimizer = 0;
  double quantization_constants = 0;
  double raw_gradient = 0;    // as backward makes it
  double whole_gradient = 0;  // the same while it waits unsharded for the last microbatch
  bool paged = false;         // the optimizer's share (OptimizerRow::paged)
};

// `trainable` is of the layer: false for frozen base layers even where the method trains others.
StoredParameter stored_base(const Workload& workload, bool trainable, bool quantizable);
// The same of embedding tables that the model's code narrows.
StoredParameter stored_table(const Workload& workload, bool trainable);
// The same of `elements` in matrices, of experts or not: with what a factored or projected
// optimizer keeps of those.
StoredParameter stored_matrices(const Workload& workload, bool trainable, std::int64_t elements,
                                const MatrixSides& sides, bool experts = false);
StoredParameter stored_adapter(const Workload& workload);

// Whether frozen experts stay in the format of what bitsandbytes does not quantise: transformers
// 5 has them in one tensor of three dimensions, no nn.Linear (integrations/bitsandbytes.py).
bool leaves_experts_whole(const Workload& workload);

// Bytes of an expert's weight as it is stored: fp32 also where PEFT makes fp32 of those left whole.
double stored_expert_weight(const Workload& workload, const ParallelPlan& plan, bool trainable);

// Bytes of one weight in the format of 8-bit or 4-bit products, by rows and, where products ask for
// it, by columns; 0 where products are wider.
double narrow_weight_bytes(const Workload& workload);

LayerState layer_state(const Workload& workload, const ParallelPlan& plan,
                       const LayerParameters& parameters, bool trainable);

// What becomes of an embedding whose weights are sharded when tokens are looked up: whether it goes
// back to shards, and whether backward gathers it again. The head goes on to its backward at once.
struct EmbeddingGathers {
  bool goes = false, again = false;
};
EmbeddingGathers embedding_gathers(const Workload& workload, const ParallelPlan& plan);

// What the optimizer steps: the base, or its adapters.
StoredParameter stored_stepped(const Workload& workload);

// Bytes of a matrix's weight that ranks send each other once it was stepped: as it is stored, 8-bit
// ones with one scale too. MXFP8 is cast by rows and by columns from what was gathered in bf16.
double gathered_matrix_weight(const Workload& workload);

// One step of the optimizer on the GPU: bytes that it reads and writes for each parameter that it
// steps, and the kernels that do it (kernels.md: 28 B for fused fp32 AdamW).
struct OptimizerPass {
  double bytes_each = 0;
  double cold_each = 0;  // of these, from memory however small the tensors are
  int kernels = 0;
  int kernels_of_each = 0;  // tensor, where they are stepped one after the other
};
OptimizerPass optimizer_pass(const Workload& workload);
// What ZeRO reads of 16-bit gradients before it steps them, beside what OptimizerPass has of their
// norm: bytes of each, and kernels of each tensor of which a rank has a part.
struct PartitionReads {
  double bytes_each = 0;
  int kernels_of_each = 0;
  bool checked = false;  // for infinity and NaN
  bool narrow = true;    // they are of less than 32 bits
};
PartitionReads partition_reads(const Workload& workload, const ParallelPlan& plan);
// Of these states' gradients, what lies in a buffer that stays: it is zeroed whole in each step,
// whatever share of it is stepped (Megatron-LM @d98e8a64dd
// megatron/core/distributed/distributed_data_parallel.py, zero_grad_buffer).
Bytes zeroed_gradients(const Workload& workload, const LayerState& state);
// What a norm looks for NaN in before it is reduced (NVIDIA/Megatron-LM @d98e8a64dd
// megatron/core/distributed/param_and_grad_buffer.py, check_grads). What Megatron-FSDP has sharded
// it does not look at
// (fsdp/src/megatron_fsdp/param_and_grad_buffer.py, reduce_scatter_gradients).
Bytes checked_gradients(const Workload& workload, const ParallelPlan& plan,
                        const LayerState& state);
// The same where the optimizer is offloaded: bytes of host memory that a step reads and writes for
// each parameter, its gradient as wide as what is stepped.
double host_optimizer_bytes(const Workload& workload);
// What such an optimizer gets of a layer's gradients: those of the elements that this rank steps,
// as wide as they are stepped, also where whole ones stay on the GPU.
std::int64_t gradients_on_host(const Workload& workload, const LayerState& layer);

// Data-parallel ranks among which an expert's state is sharded: of one shard group, those that have
// the same expert.
int expert_shard_ranks(const ParallelPlan& plan);

}  // namespace shardwise
