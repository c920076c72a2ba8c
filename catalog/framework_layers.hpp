// The code of a layer: which kernels a framework runs for it, and what it computes twice.
#pragma once

#include <optional>
#include <string>

#include "catalog/framework_kinds.hpp"
#include "catalog/library_release.hpp"

namespace shardwise {

// What holds for all operators of a layer, and those beside attention and experts.
struct FrameworkLayers {
  KernelStyle kernels = KernelStyle::eager;
  bool runs_transformers = false;    // models are transformers' own classes (ModelCode), or of code
                                     // that is written as these are
  bool patches_built_model = false;  // a plugin's kernels go into a model's modules, one by one
  // The whole model is one compiled function, where it is compiled: all its gradients come out of
  // one backward graph, each microbatch's beside what earlier ones have added up.
  bool compiles_whole_model = false;
  // Runs PyTorch's DistributedDataParallel, under which a compiled graph is cut wherever the
  // parameters behind it fill a bucket.
  bool cuts_compiled_graphs = false;
  bool leaves_odd_lengths = false;  // compiled, PyTorch before 2.1: GemmWork::padding is not tried
  bool deterministic = false;  // kernels that take their sums in one order, where there are others
  DeltaRule delta_rule = DeltaRule::kernels;  // of transformers' classes
  bool fused_norms = false;                   // norms are one kernel though the rest is eager
  bool norms_add_residual = false;  // fused kernels: those of norms add the branch to the residual
                                    // stream, and the stream's gradient to their own
  bool eager_activation = false;    // act(gate) * up is two kernels though all else is fused
  // Fused kernels: the gradients of gate and up are written over them. Stated by a plugin (Liger),
  // by no row.
  bool overwrites_gate_and_up = false;
  bool keeps_narrow_gate = false;  // fused kernels: backward keeps gate and up in 8 bits
  bool plain_activation = false;   // with eager kernels: silu is x * sigmoid(x), written out
  bool adds_bias_apart = false;    // linears leave their bias to an operator of its own, before
                                   // dropout, the residual's sum or an activation, each a kernel
  bool scales_branches = false;    // a block's, by a number each, before they join the stream
  // Dropout of a branch is a function of TorchScript, whose derivative keeps the mask whatever the
  // rate.
  bool keeps_dropout_masks = false;
  bool sequence_first = false;  // activations are [sequence, batch, width]
  // What an operator makes, and a gradient of it, have memory of their own from start to end.
  bool lays_out_results = false;
};

// Attention, with the rotation of its queries and keys.
struct FrameworkAttention {
  AttentionKernel kernel = AttentionKernel::flash;
  std::optional<AttentionKernel> kernel_blackwell;  // its choice from compute capability 10.0
  bool by_transformer_engine = false;               // which chooses the kernel, and calls it
  std::optional<LibraryRelease> cudnn;              // that it runs with; absent: one of today
  bool repeats_kv = false;                // K and V expanded to all heads before the kernel
  bool repeats_kv_before_rotary = false;  // so that the copies are rotated (litgpt)
  // PyTorch's attention gets K and V of the heads that there are where nothing masks: its kernels
  // below compute capability 8.0 do not take them (simulator/graphs/written_out_attention.hpp).
  bool writes_grouped_out = false;
  // PyTorch's attention has no kernel at all. No row says so: the card has none for the format
  // (settle_on), or a run asked for its math backend.
  bool by_operators = false;
  bool masks_padding = false;  // attention gets the padding as a mask of its own: PyTorch
                               // takes the memory-efficient kernel, over the whole square
  bool masks_windows = false;  // and a window by one, once a sequence is as long: K and V are
                               // expanded to all heads, every layer keeps a 16-bit mask
  bool registers_causal_masks = false;  // runs the models' own code (Transformer::causal_mask_rows)
  bool reads_lengths = false;  // each layer's attention asks the GPU for the longest sequence
  // Queries whose scores a token indexer has at one time. Its choice then goes as numbers to a
  // kernel that reads latent keys (simulator/graphs/sparse_attention.hpp). Empty: as transformers'
  // classes.
  std::optional<int> indexer_slice;
  std::optional<int> softmax_batches;  // what divides the sequences times heads of the scores that
                                       // its fused softmax takes; others go by PyTorch's operators
  bool half_softmax = false;           // eager attention: PyTorch masks the scores, and its softmax
                                       // stays in 16 bits, whatever a fused one would take
  bool softmax_in_fp32 = false;        // eager attention: its softmax, then cast back to 16 bits
  // Eager kernels: attention's softmax is maximum, difference, exponential, sum and quotient, each
  // a kernel of its own, and so is a dense loss's log-softmax, unless a compiler has the loss.
  bool plain_softmax = false;
  bool guards_softmax = false;  // plain_softmax also lets a query have no key: exponentials and
                                // quotient are selections (torch.where), which are read on
  // V as the kernel saves it holds the fused projection's output ...
  bool value_is_view_of_qkv = false;
  // ... or Q does, with copies of K and V beside it, which have as many heads.
  bool query_is_view_of_qkv = false;
  // Tokens come before sequences: q, k, v and the output are copied around a kernel that never
  // stores scores, which wants them the other way, where there is more than one sequence.
  bool transposes = false;
  // Sequences and heads are one dimension of its output, then two again: with more than one
  // sequence both are copies.
  bool merges_heads_of_output = false;
  RotaryCode rotary_code = RotaryCode::halves;  // by PyTorch's own operators
  bool eager_rotary = false;    // rotation is PyTorch's own operators though all else is fused
  bool fused_rotary = false;    // flash-attn rotates; keys are packed with values
  bool gathers_angles = false;  // rotation by PyTorch's operators keeps sine and cosine of every
                                // token, gathered by its position, for queries and for keys
};

// Mixtures of experts: routing, dispatch, and the products of the experts.
struct FrameworkExperts {
  // The router's product is one of fp32, on a copy of its input, where all else has 16 bits.
  bool routes_in_fp32 = false;
  bool loops = false;  // modules that Python calls one after the other, and asks the
                       // GPU before each which tokens it got
  // Experts are multiplied by PyTorch's grouped product (torch._grouped_mm), as transformers 5
  // does: one kernel for all, in the format that their weights are stored in.
  bool torch_grouped_products = false;
  bool casts_grouped_products = false;  // under autocast its own code makes 16-bit copies for them
  bool loops_grouped_products = false;  // one by one; no row says so: the card does (settle_on)
  bool weighs_bias = false;           // the bias of an expert's second linear is weighted token by
                                      // token, expert by expert, by PyTorch's own operators
  bool weighs_in_activation = false;  // fused: a compiled function of gate and up weighs its rows
  bool moves_rows_by_maps = false;  // Transformer Engine's kernels find where a row goes, and rows
                                    // are sorted by expert on a single rank of experts too
  bool weighs_rows_apart = false;   // what each expert made of a token is weighted by operators of
                                    // PyTorch's own, in fp32, and put in order by an index
  bool compiles_dispatch = false;   // with compiled kernels: what weighs rows is one of them
  bool dispatches_once = false;     // a token goes once to each rank of a node, or each node, that
                                    // holds experts of its own (DeepEP, HybridEP), not once to each
                                    // expert
  bool dispatches_by_map = false;   // ... by the routing maps of all ranks (HybridEP): each row
                                    // takes along the scores of all experts of its node, and each
                                    // expert's rows are laid out as narrow products want them
  // Nodes of a layer whose exchanges hide behind another microbatch keep what their backward has
  // read (simulator/memory/overlapped_nodes.hpp).
  bool overlap_keeps_nodes = false;
};

// Products of 8 and 4 bits.
struct FrameworkNarrow {
  bool scales_rows = false;  // fp8: a scale for each row of an operand, not one for all
  WeightCast weight_cast = WeightCast::once;  // fp8 with one scale
  NarrowWeights weights = NarrowWeights::none;
  // By rows and by columns, even if a tensor has one scale. No row says so: not on cards whose
  // products read either way (settle_on).
  bool weights_twice = true;
  bool keeps_frozen_twice = false;  // and so of frozen weights that are stored in 8 bits
  bool gathers_sequence = false;    // fp8 with one scale: SP gathers 8 bits
  bool current_scaling = false;  // fp8 with one scale: of the tensor's own largest value, which is
                                 // looked for first
  bool quantizes_apart = false;  // NVFP4: rows and columns of an operand by a kernel each
  // MXFP8: operands of cuDNN's attention have 8 bits too (Transformer Engine's fp8_dpa), and those
  // of the head's product (Megatron Core's fp8_output_proj).
  bool attention = false, head = false;
};

// Which recomputation is usual, and what its checkpoints do.
struct FrameworkRecompute {
  std::string pretrain = "none";  // name of a recompute row
  std::string finetune = "full";
  std::optional<std::string> quantized;  // the same where the base is quantised
  bool stops_early = false;              // re-runs only until the last saved tensor is back
  bool reentrant = true;                 // of PyTorch: not where they stop early
  // False: its stack of Mamba's and other mixers runs no layer again as a whole: "full" is "none".
  bool hybrids = true;
  // Sequences of so many tokens or more: what full recomputation keeps of a layer, its input, waits
  // in host memory.
  std::optional<int> offloads_from;
  // Checkpoints that are not reentrant do not see what a quantised linear keeps on its context
  // (FrameworkQuantized::linear_keeps_input): it stays from the forward pass on.
  bool checkpoints_miss_context = false;
  bool selective_op_omits_cudnn = false;  // its list of operators that selective checkpoints keep
                                          // knows the other attention kernels only
  bool selective_op_omits_all_to_all = false;  // ... nor the all-to-all to experts and back
};

}  // namespace shardwise
