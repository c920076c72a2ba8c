// What the fields of a framework row are made of: the choices between which its code decides.
#pragma once

#include <optional>

#include "catalog/adapter.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// Bytes per parameter of weight, gradient and fp32 master (docs/how-it-works.md has the table).
enum class WeightRecipe {
  fp32_with_half_compute,  // 4 + 4 + 0: fp32 weights are the master; 16-bit copies made when used
  half_with_master,        // 2 + g + 4: 16-bit weights, fp32 master inside the optimizer
  pure_half,               // 2 + g + 0: everything in 16 bits, optimizer states too
  fp32,                    // 4 + 4 + 0 and fp32 arithmetic
};

// When gradients exist.
enum class GradientLife {
  per_step,     // made by backward, released by zero_grad(set_to_none)
  persistent,   // one contiguous buffer for the whole run (Megatron main_grad, nanotron)
  in_backward,  // stepped and released as soon as it is made (torchtune's optimizer_in_bwd; LOMO,
                // arXiv 2306.09782): no accumulation, and no norm over all of them
};

// How long the 16-bit gradient lives that is added into a wider, persistent one.
enum class GradientCopyLife {
  layer,          // until the layer's backward is over
  microbatch,     // until the microbatch's backward is over (nanotron)
  next_backward,  // until the next microbatch's backward begins (DeepSpeed's BF16 optimizer)
  run,            // for the whole run, from the first backward on: zeroed in place
};

// What becomes of the weights of an 8-bit product that has one scale for a tensor.
enum class WeightCast {
  once,  // the 8-bit copy is made when the optimizer has stepped, and kept (Transformer Engine)
  each_pass,  // scanned for its largest value and cast by each forward pass, cast by columns in
              // each backward pass (torchao)
  gathered,   // each rank casts its shard and 8 bits are gathered (torchao's float8 all-gather)
};

// Where weights of an 8-bit or 4-bit product lie in that format from one pass to the next.
enum class NarrowWeights {
  none,    // nowhere: they are cast in every pass (torchao)
  saved,   // on the graph, from a microbatch's forward pass to its backward pass
  beside,  // kept beside the 16-bit ones, and made again when these were stepped
  stored,  // in their place, where 8 bits are asked for; four are kept beside
};

// How logits become a loss; the live copies of [tokens, vocabulary] follow (graphs/head_graph).
enum class LossKind {
  dense,              // logits, fp32 upcast, fp32 log-softmax, their gradients
  dense_fp32_output,  // as dense, and the mixed-precision wrapper keeps one more fp32 copy
  vocab_parallel,     // vocabulary sharded over TP; one fp32 copy, softmax in place (Megatron)
  chunked,            // dense over `loss_chunks` slices of the tokens
  fused_linear,       // head and loss in one kernel, chunk by chunk (Liger): no logits kept
  cut,                // head and loss in one kernel that makes the logits again (Cut Cross-Entropy)
  fused_half,         // 16-bit logits, loss and gradient in one kernel, in place
  fused_fp32,         // the same on an fp32 copy of the logits (Liger's behind transformers' cast)
};

// How long the training loop holds the model's output, and with it the graph: the logits, and what
// Python functions keep on their context, which autograd does not clear.
enum class OutputLife {
  backward,     // until backward is over
  next_output,  // until the next forward pass has made another
  next_loss,    // the same, where the model computes the loss as well
};

enum class KernelStyle {
  eager,     // one kernel per PyTorch operator; norms and activations save what autograd asks
  fused,     // hand-fused norm, activation, rope (Transformer Engine, apex, flash-attn layers)
  compiled,  // torch.compile: element-wise chains fused, saved set minimised
};

// What computes the gated delta rule.
enum class DeltaRule {
  kernels,     // those of flash-linear-attention, and causal_conv1d's before it
  row_by_row,  // PyTorch's operators, which solve a chunk's triangle by its rows
  solved,      // the same, which solve it at once (transformers 5.17 and later)
};

enum class AttentionKernel {
  flash,   // scores never stored
  flash1,  // the same by FlashAttention's first version or its Triton port
  flash2,  // the same by the flash-attn package 2, on every GPU that it knows
  cudnn,   // the same by cuDNN where the GPU has it (Transformer Engine from Hopper on)
  memory_efficient,
  eager,  // scores and softmax stored
};

// Which shards a layer's parameters are gathered from, and how many gathered copies may live.
struct ShardedParameters {
  double gathered_layers_forward = 2;   // unsharded 16-bit layer copies alive at once, forward,
  double gathered_layers_backward = 2;  // and backward; all-gather buffers are among them
  bool copy_out = false;                // one of them is an all-gather buffer of another stream,
                                        // copied out into the parameters (FSDP2); so are gradients
                                        // into what is reduced, by the stream that computes
  // Parameters are views of what is gathered, so that autograd joins a unit's gradients into one;
  // another stream widens it and divides it by a part of the ranks before it is reduced (FSDP1).
  bool joins_gradients = false;
  // And the optimizer steps them as one tensor: a state of a unit is one too (FSDP1 without
  // use_orig_params).
  bool steps_whole_units = false;
  bool copies_gradients = false;  // into the buffer that is reduced, one by one, by the stream that
                                  // computes (Megatron-FSDP whose products do not add there)
  bool reshard_after_forward = true;
  bool reshard_with_pipeline = true;  // the same where there is more than one pipeline stage
  // Embedding, last norm and head are one unit, the root: gathered until backward ends, and reduced
  // together then, as no gradient of its input tells that it is done (FSDP2).
  bool root_holds_ends = false;
  // The embedding is a unit like a block: it goes back to shards after forward, and is gathered
  // again for backward, whose hook is on what it returns (FSDP2), unless a head shares its table:
  // that one is the root's, where `root_holds_ends` says so.
  bool embedding_is_unit = false;
  // Autograd keeps what was gathered for forward until backward is through with it (DeepSpeed's
  // memory_efficient_linear switched off); it is gathered again all the same.
  bool saved_for_backward = false;
  bool prefetches_after_loss = false;  // the loss is none of the model's modules, so that backward
                                       // gathers the last layer when the loss is through
  // FSDP: the block and the modules in it that its policy wraps as well; stated by a run, by no row
  int units_per_block = 1;
  std::optional<Bytes> live_parameters;  // DeepSpeed: max_live_parameters, in 16-bit bytes
};

// The ZeRO stage of an engine that a framework's own script starts for a method.
struct EngineStage {
  Method method = Method::full;
  int stage = 0;
};

// Which of the three memory figures a framework logs, where a report does not say.
enum class MemoryKind {
  tensors,           // what tensors hold, without the libraries' workspaces (fake tensors)
  allocated,         // torch.cuda.max_memory_allocated
  reserved,          // torch.cuda.max_memory_reserved
  device,            // nvidia-smi
  reserved_at_step,  // max_memory_reserved, with the peaks reset before the optimizer steps
  allocated_first,   // max_memory_allocated once the first step is over
};

// Which pipeline stage that figure is of.
enum class MemoryStage { worst, first };

// How the ranks of a context group come by each other's keys and values.
enum class ContextKind {
  ring,        // in turn, each beside the kernel that reads those before (arXiv 2310.01889)
  all_gather,  // all at once, before the kernel
  ulysses,     // all-to-all: whole sequences, a share of the heads (arXiv 2309.14509)
};

// How rotation of queries and keys by PyTorch's operators is written.
enum class RotaryCode {
  halves,        // x cos + rotate_half(x) sin, as transformers' classes have it
  pairs,         // neighbours, told apart by unbinding a dimension of two, times fp32 angles
  chosen_pairs,  // the same in fp32, each of the two chosen by an index for each product
};

// How a context group joins what its ranks' keys contribute to one query, where the kernel runs on
// one rank's keys at a time (arXiv 2310.01889).
enum class ContextMerge {
  none,           // keys of all ranks are gathered and one kernel reads them
  fused_half,     // outputs in 16 bits, a kernel for each (Transformer Engine)
  fp32_operators  // outputs in fp32, PyTorch's operators (its context_parallel)
};

// How layers are dealt to pipeline stages where nobody says (usual_layers_per_stage).
enum class StageBalance {
  even,                // the same number each, the rest to the first ones
  ends_as_layers,      // embedding and head count as a layer each where that makes it even
  head_by_parameters,  // the head counts with its parameters; a stage closes once it holds more
                       // than its share, so the first ones hold most (nanotron)
  modules_in_turn,     // embedding, layers, last norm and head are dealt as so many modules, the
                       // same number each, the rest to the first ones
  last_relieved,       // where layers divide evenly over four stages and more, as if there were up
                       // to a layer more for each, which the last one then lacks (LiBai)
};

// An optimizer written in PyTorch's operators, a tensor after the other: kernels for each, values
// read and written for each parameter, and tensors as large as the one that is stepped which live
// beside it and its states.
struct WrittenOptimizer {
  int kernels = 0;
  double values = 0;
  int temporaries = 0;
};

}  // namespace shardwise
