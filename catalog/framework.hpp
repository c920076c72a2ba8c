// What a training framework does by default: one row of catalog/frameworks/ each.
//
// Every field is a behaviour of the framework's code, with its source in `provenance`; none of
// them is an efficiency. A request may override what its user would set by a flag.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/adapter.hpp"
#include "catalog/dtype.hpp"
#include "catalog/fitted.hpp"
#include "catalog/framework_kinds.hpp"
#include "catalog/lane_loop.hpp"
#include "catalog/library_release.hpp"
#include "catalog/provenance.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// What a trainer makes of whole logits for its log: bytes moved of each, and kernels of a slice.
struct LoggedLogits {
  double bytes = 0;
  int slice_tokens = 1, kernels = 0;
  int launches(std::int64_t tokens) const {
    return static_cast<int>((tokens + slice_tokens - 1) / slice_tokens) * kernels;
  }
  friend bool operator==(const LoggedLogits&, const LoggedLogits&) = default;
};

struct Framework {
  std::string id;
  std::string name;
  // Lower-case words by which records name it; longest wins. "a & b" is there where both are.
  std::vector<std::string> match;
  bool is_engine = false;  // trainers of other rows run on it; it is meant where none is named
  std::vector<std::string> match_trainer;  // of an engine's `match`: words that name a trainer
  std::string family;   // rows of one code base are as uncertain as each other; its own id if alone
  std::string refines;  // another row, of which this is a special case ...
  std::vector<std::string> match_note;  // ... where a record's framework note holds one of these
  std::string with_zero;  // the row that holds instead where a ZeRO stage is on: DeepSpeed
  std::vector<EngineStage> with_zero_alone;  // by which it holds on one GPU, and its stage there
  std::string in_fp32;  // the row of the same code whose weights are fp32; empty: none
  std::string version;  // commit or release that was read

  WeightRecipe pretrain_weights = WeightRecipe::half_with_master;
  WeightRecipe finetune_weights = WeightRecipe::half_with_master;
  DType frozen_dtype = DType::bf16;    // of base weights without a gradient, unquantised
  DType gradient_dtype = DType::fp32;  // of the accumulated gradient (where weights are 16-bit)
  std::optional<DType> gradient_dtype_fp16;  // the same where compute is fp16 (see resolved_for)
  DType reduce_dtype = DType::fp32;          // on the wire
  GradientLife gradient_life = GradientLife::per_step;
  std::optional<GradientLife> gradient_life_fp16;  // the same where compute is fp16
  bool gradient_copy_while_accumulating = false;   // 16-bit gradient beside the fp32 buffer
  GradientCopyLife gradient_copy_life = GradientCopyLife::layer;
  bool bucket_copies_gradients = false;  // DDP without gradient_as_bucket_view
  bool copies_into_buckets = false;  // DeepSpeed's ZeRO: gradients are copied into a bucket of one
                                     // piece, divided there, and added to a rank's part
  Bytes gradient_bucket{25 << 20};   // of one reduction
  std::optional<Bytes> gradient_bucket_stage_2;  // the same in ZeRO-2, where its config differs
  bool flat_parameters_mix_frozen = false;       // FSDP1: adapters and frozen weights in one unit
  // FSDP1's hooks on units without a trained weight, which reentrant checkpoints around units call:
  // each layer's input and its gradient stay until the whole backward pass is done. Transformers
  // checkpoints inside of its layers since 4.52 and 4.53, which call none.
  bool frozen_units_keep_inputs = false;
  bool fsdp1_keeps_inputs = false;     // the same where a plan says FSDP1: rows of DeepSpeed too
  bool fp32_gradient_at_step = false;  // whole-partition fp32 copy while stepping (DeepSpeed)
  // Beside 16-bit moments: of the masters of bf16 weights only what these lack, their lower half,
  // and moments that go to fp32 for a step, all at once.
  bool keeps_remainders = false, widens_moments = false;
  int reduce_buffers = 0;             // buckets kept allocated for the whole run
  bool buffers_from_stage_2 = false;  // ... where ZeRO shards gradients; at stage 1 a bucket is
                                      // flattened when the last microbatch is through
  // ZeRO-1 steps its shard as one flat tensor: master, gradient and states are a block each, and
  // gradients of other shards go before it steps.
  bool flat_shard = false;
  // Whole gradients that go with the step are reduced bucket after bucket, which is one flat tensor
  // and a copy of it in `reduce_dtype`; it closes with the gradient that makes it too long.
  bool reduces_flat_buckets = false;
  // Persistent gradients are one flat tensor, cast to a narrower `reduce_dtype` as a whole.
  bool reduces_flat_gradient = false;
  // A sharded optimizer's trained weights move into one flat tensor, beside that of the gradients,
  // while they are there as they were built; those blocks go back to the allocator one by one.
  bool remaps_weights = false;
  bool wide_gradient_checks_fp16 = false;  // where compute is fp16, overflow and norm are read off
                                           // fp32 and fp64 copies of each gradient in turn
  bool wide_gradient_checks = false;       // the same in every format (DeepSpeed until 2024)
  bool states_at_start = false;            // optimizer states are made before the first step
  bool clones_partition = false;  // states are one flat tensor each (DeepSpeed), with a 16-bit copy
                                  // beside the fp32 one: as the master is made, and of the gradient
                                  // while stepping

  ShardedParameters sharded;
  bool gathers_as_stored = false;  // ZeRO-3 gathers fp32 weights in fp32, and autocast casts them
                                   // where they are used (FSDP without MixedPrecision)
  std::optional<bool> overlap_reduce_at_stage_2;  // if not as overlap_gradient_reduce
  bool overlap_reduce_at_stage_3 = true;          // ZeRO-3 reduces beside what follows
  bool overlap_gradient_reduce = true;
  bool overlap_parameter_gather = true;
  bool overlap_tensor_comm = false;  // async TP / user-buffer overlap
  // That in mixtures of experts too, and where it computes in NVFP4.
  bool overlap_tensor_in_mixtures = true, overlap_tensor_in_four_bits = true;
  bool overlap_tensor_backward = true;  // input-gradient collectives behind the weight gradient
  bool overlap_pipeline_comm = true;
  bool overlap_interleaved_comm = true;       // the same with several model chunks per stage
  bool partitions_pipeline_messages = false;  // without SP: a tensor rank sends its share of what
                                              // they all hold, and the receivers gather it
  bool weighs_expert_bias = false;    // the bias of an expert's second linear is weighted token by
                                      // token, expert by expert, by PyTorch's own operators
  bool weighs_in_activation = false;  // fused: a compiled function of gate and up weighs its rows
  bool moves_rows_by_maps = false;  // Transformer Engine's kernels find where a row goes, and rows
                                    // are sorted by expert on a single rank of experts too
  bool weighs_rows_apart = false;   // what each expert made of a token is weighted by operators of
                                    // PyTorch's own, in fp32, and put in order by an index
  bool compiles_dispatch = false;   // where it compiles, that too
  bool loops_experts = false;       // modules that Python calls one after the other, and asks the
                                    // GPU before each which tokens it got
  // Experts are multiplied by PyTorch's grouped product (torch._grouped_mm), as transformers 5
  // does: one kernel for all, in the format that their weights are stored in.
  bool torch_grouped_products = false;
  bool casts_grouped_products = false;  // under autocast its own code makes 16-bit copies for them
  // The router's product is one of fp32, on a copy of its input, where all else has 16 bits.
  bool routes_in_fp32 = false;
  bool loops_grouped_products = false;  // no row says so: it follows from the card (settle_on)
  bool compiles_adapters = true;  // false: its adapters break the compiler's graph, and layers,
                                  // which it checkpoints, are left to eager operators whole
  bool scales_rows = false;       // fp8: a scale for each row of an operand, not one for all
  WeightCast weight_cast = WeightCast::once;  // fp8 with one scale
  NarrowWeights narrow_weights = NarrowWeights::none;
  bool narrow_weights_twice = true;  // by rows and by columns, even if a tensor has one scale; not
                                     // on cards whose products read either way
  bool gathers_sequence_quantized = false;  // fp8 with one scale: SP gathers 8 bits
  bool dispatches_once = false;    // a token goes once to each rank of a node, or each node, that
                                   // holds experts of its own (DeepEP, HybridEP), not once to each
                                   // expert
  bool dispatches_by_map = false;  // and so by the routing maps of all ranks (HybridEP): each row
                                   // takes along the scores of all experts of its node, and each
                                   // expert's rows are laid out as narrow products want them
  // Nodes of a layer whose exchanges hide behind another microbatch keep what their backward has
  // read (simulator/memory/overlapped_nodes.hpp).
  bool overlap_keeps_nodes = false;
  bool current_scaling = false;  // fp8 with one scale: of the tensor's own largest value, which is
                                 // looked for first
  bool quantizes_apart = false;  // NVFP4: rows and columns of an operand by a kernel each
  // MXFP8: operands of cuDNN's attention have 8 bits too (Transformer Engine's fp8_dpa), and those
  // of the head's product (Megatron Core's fp8_output_proj).
  bool narrow_attention = false, narrow_head = false;
  bool sequence_first = false;      // activations are [sequence, batch, width]
  bool norms_add_residual = false;  // fused kernels: those of norms add the branch to the residual
                                    // stream, and the stream's gradient to their own
  bool reduces_every_microbatch = false;  // gradient synchronised per microbatch (ZeRO-2/3, FSDP)
  bool pipelines_reduce_once = false;     // with stages it is not: their runtime turns it off
                                          // (torch.distributed.pipelining)
  bool accumulates_in_reduce_dtype = false;  // where it is not: whole gradients wait for the last
                                             // microbatch in `reduce_dtype` (FSDP2)
  bool copies_linear_inputs = false;         // TP without SP: each column-parallel linear copies
                                             // what it reads
  bool exchanges_per_linear = false;    // TP: linears that read one tensor each gather it, or sum
                                        // its gradient, for themselves
  bool sums_gate_and_up_apart = false;  // TP without SP: the same of these two only
  bool dtensor_parallel = false;  // TP by PyTorch's DTensor: what it gathers or scatters along
                                  // the sequence is copied once more, a loss on cut logits is
                                  // made by kernels of its own

  KernelStyle kernels = KernelStyle::eager;
  bool runs_transformers = false;  // models are transformers' own classes (ModelCode), or of code
                                   // that is written as these are
  AttentionKernel attention = AttentionKernel::flash;
  DeltaRule delta_rule = DeltaRule::kernels;           // of transformers' classes
  std::optional<AttentionKernel> attention_blackwell;  // its choice from compute capability 10.0
  bool attention_by_transformer_engine = false;        // which chooses the kernel, and calls it
  std::optional<LibraryRelease> cudnn;                 // that it runs with; absent: one of today
  bool deterministic = false;  // kernels that take their sums in one order, where there are others
  bool selective_op_omits_cudnn = false;  // its list of operators that selective checkpoints keep
                                          // knows the other attention kernels only
  bool selective_op_omits_all_to_all = false;  // nor the all-to-all to experts and back
  bool attention_repeats_kv = false;           // K and V expanded to all heads before the kernel
  // PyTorch's attention gets K and V of the heads that there are where nothing masks: its kernels
  // below compute capability 8.0 do not take them (simulator/graphs/written_out_attention.hpp).
  bool writes_grouped_attention_out = false;
  bool attends_by_operators = false;  // PyTorch's attention has no kernel at all: the card has none
                                      // for the format, or its math backend was asked for
  bool repeats_kv_before_rotary = false;  // so that the copies are rotated (litgpt)
  bool adds_head_slices_apart = false;    // a fused head and loss: Liger 0.6.2 to 0.8.2
  bool masks_padding = false;  // attention gets the padding as a mask of its own: PyTorch
                               // takes the memory-efficient kernel, over the whole square
  bool masks_windows = false;  // a window is one too, once a sequence is as long: K and V are
                               // expanded to all heads, every layer keeps a 16-bit mask
  // Queries whose scores a token indexer has at one time. Its choice then goes as numbers to a
  // kernel that reads latent keys (simulator/graphs/sparse_attention.hpp). Empty: as transformers'
  // classes.
  std::optional<int> indexer_slice;
  std::optional<int> softmax_batches;  // what divides the sequences times heads of the scores that
                                       // its fused softmax takes; others go by PyTorch's operators
  bool half_softmax = false;           // eager attention: PyTorch masks the scores, and its softmax
                                       // stays in 16 bits, whatever a fused one would take
  bool softmax_in_fp32 = false;        // eager attention: its softmax, then cast back to 16 bits
  bool value_is_view_of_qkv =
      false;  // V as the kernel saves it holds the fused projection's output
  bool query_is_view_of_qkv =
      false;                     // Q holds it, with a copy of K and V beside it; as many heads each
  bool plain_softmax = false;    // eager kernels: attention's softmax is maximum, difference,
                                 // exponential, sum and quotient, each a kernel of its own, and so
                                 // is a dense loss's log-softmax, unless a compiler has the loss
  bool guards_softmax = false;   // and lets a query have no key: exponentials and quotient are
                                 // selections (torch.where), whose results are what is read on
  bool gradient_fusion = false;  // wgrad accumulates straight into the fp32 gradient
  LossKind loss = LossKind::dense;
  LossKind fused_loss = LossKind::fused_linear;  // its head and loss in one kernel, where asked for
  // cut: what the gradient of hidden states or head takes of the product that makes the logits,
  // each. The kernel adds both block by block, through locks, and may leave out what 16 bits round
  // to nothing.
  double cut_gradient_share = 0;
  int loss_chunks = 8;              // chunked only
  std::optional<Bytes> loss_slice;  // chunked: as few as keep a slice's fp32 logits within this
  // chunked: the loop takes each slice back at once, so that the head's gradient is summed while
  // the others are to come, beside their logits
  bool slices_go_back = false;
  // What an operator makes, and a gradient of it, have memory of their own from start to end.
  bool lays_out_results = false;
  // chunked, vocab_parallel: as few slices as keep each within so many tokens
  std::optional<int> loss_slice_tokens;
  std::optional<int> fused_loss_slice_tokens;    // fused_linear: a slice, if not by Liger's rule
  std::optional<double> loss_slice_logit_bytes;  // live per logit of a slice, if not dense's
  std::optional<double> loss_slice_moved_bytes;  // moved of a logit in all, if not cross-entropy's
  bool loss_copies_head = false;        // chunked: a slice's product is of an fp32 copy of the head
  bool loss_recomputes_slices = false;  // chunked: each slice's forward is checkpointed
  bool loss_keeps_slices = false;       // chunked: none goes back before all are through
  bool loss_makes_slices_first = false;  // ... and their logits are all there before a loss is
  // dense, adapters alone: tokens of a sequence that head and loss take at once; all logits are
  // kept, but only a slice of them has a gradient
  std::optional<int> head_slice;
  bool loss_upcasts = true;           // dense, chunked: logits go to fp32 before the loss
  bool gathers_logits = false;        // dense: every tensor rank gathers all logits, and takes the
                                      // whole loss
  bool whole_tables = false;          // TP by hand, dense loss: embedding and head are not cut
  bool z_loss = false;                // dense: the square of each row's log Z joins the loss
  int loss_fp32_temporaries = 0;      // fp32 copies beyond those of `loss`, forward only
  bool compiles_loss = false;         // with compiled kernels: loss fused over 16-bit logits
  bool compiles_loss_alone = false;   // also beside eager kernels
  bool scatters_labels = false;       // compiled, PyTorch until 2.4: no row says so
  bool leaves_odd_lengths = false;   // compiled, PyTorch before 2.1: GemmWork::padding is not tried
  bool upcasts_in_loss = false;       // the fp32 copy is the loss's own: the model's logits stay
  bool returns_fp32_logits = false;   // vocab_parallel: the fp32 copy is the model's own, and all
                                      // that its loss gets
  bool joins_context_logits = false;  // vocab_parallel: the two pieces of a sequence that a rank of
                                      // context parallelism has are copied into one
  LoggedLogits logged_logits;         // of losses that get all logits at once
  // The whole model is one compiled function, where it is compiled: all its gradients come out of
  // one backward graph, each microbatch's beside what earlier ones have added up.
  bool compiles_whole_model = false;
  // Runs PyTorch's DistributedDataParallel, under which a compiled graph is cut wherever the
  // parameters behind it fill a bucket.
  bool cuts_compiled_graphs = false;
  // What is compiled returns its logits beside its loss. Their gradient is nobody's, so autograd
  // makes it, of zeros, for the compiled backward pass to add to.
  bool returns_logits = false;
  // dense, autocast: cross-entropy is called under it, of the head's own 16-bit logits.
  bool loss_under_autocast = false;
  // dense: called of one slice of rows after another of whole logits, whose gradients are joined
  // when all have gone back (litgpt's chunked_cross_entropy).
  bool loss_takes_slices = false;
  bool output_holds_logits = false;  // the training loop keeps the model's output
  bool output_holds_keys = false;    // the keys and values of all layers among it (use_cache)
  OutputLife output_life = OutputLife::backward;
  bool eager_activation = false;        // act(gate) * up is two kernels though all else is fused
  bool overwrites_gate_and_up = false;  // fused kernels: the gradients of gate and up are written
                                        // over them (Liger)
  bool plain_activation = false;        // with eager kernels: silu is x * sigmoid(x), written out
  bool adds_bias_apart = false;  // linears leave their bias to an operator of its own, before
                                 // dropout, the residual's sum or an activation, each a kernel
  bool scales_branches = false;  // a block's, by a number each, before they join the stream
  RotaryCode rotary_code = RotaryCode::halves;  // by PyTorch's own operators
  bool eager_rotary = false;  // rotation is PyTorch's own operators though all else is fused
  // Tokens come before sequences: q, k, v and the output are copied around a kernel that never
  // stores scores, which wants them the other way, where there is more than one sequence.
  bool transposes_attention = false;
  // Sequences and heads are one dimension of its output, then two again: with more than one
  // sequence both are copies.
  bool merges_heads_of_output = false;
  bool gathers_angles = false;  // rotation by PyTorch's operators keeps sine and cosine of every
                                // token, gathered by its position, for queries and for keys
  // Dropout of a branch is a function of TorchScript, whose derivative keeps the mask whatever the
  // rate.
  bool keeps_dropout_masks = false;
  bool fused_norms = false;          // norms are one kernel though the rest is eager
  bool patches_built_model = false;  // a plugin's kernels go into a model's modules, one by one
  bool fused_rotary = false;         // flash-attn rotates; keys are packed with values
  std::string recompute_pretrain = "none";  // name of a recompute row
  std::string recompute_finetune = "full";
  std::optional<std::string> recompute_quantized;  // the same where the base is quantised
  bool sequence_parallel = true;                   // with TP > 1
  bool regathers_sequence = true;  // SP: backward gathers again what it did not save
  // Sequences of so many tokens or more: what full recomputation keeps of a layer, its input, waits
  // in host memory.
  std::optional<int> offloads_checkpoints_from;
  // False: its stack of Mamba's and other mixers runs no layer again as a whole: "full" is "none".
  bool recomputes_hybrids = true;
  bool recompute_stops_early = false;   // re-runs only until the last saved tensor is back
  bool reentrant_checkpoints = true;    // of PyTorch: not where they stop early
  bool bf16_shards_at_stage_0 = false;  // its bf16 optimizer shards states though ZeRO is off
  bool stage_1_all_reduces = false;     // ZeRO-1 reduces whole gradients (no reduce-scatter)
  // ZeRO-2 is FSDP that does not reshard after forward: weights lie in shards between steps.
  bool stage_2_gathers = false;
  bool stage_2_all_reduces = false;      // and so does ZeRO-2, each rank keeping its part
  bool autocast = false;                 // torch.autocast over the weights' own dtype
  bool autocast_caches_weights = false;  // 16-bit copies of fp32 weights live through the step

  bool fused_optimizer = true;    // one kernel, no temporaries
  bool foreach_optimizer = true;  // otherwise: all tensors at once, with temporaries for each
                                  // (PyTorch 2.0 on); else one by one, with two
  int foreach_lists = 1;          // of such temporaries: two in PyTorch 2.0
  std::optional<WrittenOptimizer> written_optimizer;  // its AdamW is none of PyTorch's
  bool cpu_adam = false;  // an offloaded optimizer is its own, vectorised and in one pass
  bool clips_gradients = true;
  // The norm of each buffer of whole local gradients is read before they are reduced, and looked at
  // for NaN (Megatron Core's check_for_nan_in_grad).
  bool checks_gradients = false;
  // ZeRO takes the norm of what a rank steps tensor by tensor, each copied to fp64 before; at
  // stages 1 and 2 PyTorch's operators may look at each for infinity and NaN as well.
  bool norm_in_double = false;
  bool checks_partition = false;
  DType adapter_dtype = DType::fp32;
  std::optional<DType> adapter_dtype_quantized;  // the same beside quantised weights
  bool upcasts_unquantized = false;  // prepare_model_for_kbit_training: rest goes to fp32
  bool recasts_tables = false;       // ... but where it computes in bf16 embedding and head go back
  bool quantized_linear_keeps_input = false;    // bitsandbytes until 2024: its input stays alive
  bool quantized_linear_follows_input = false;  // bitsandbytes before 0.47: it computes in the
                                                // format of its first input, asked for or not
  bool checkpoints_miss_context = false;        // as an attribute of a context, which non-reentrant
                                                // checkpoints do not see: from forward on
  bool quantizes_head = false;                  // the output projection is quantised as well
  // False: the experts of a layer are one tensor, which bitsandbytes passes over: they stay as
  // other weights do that it leaves alone.
  bool quantizes_experts = true;
  bool widens_whole_experts = false;  // such experts become fp32, unless gradients are sharded
  bool dequantizes_experts_at_once = false;  // a layer's quantised experts are one tensor
  int dequantized_copies = 1;                // 16-bit copies of a quantised weight while it is used
  LaneLoop four_bit_unpacking = LaneLoop::four_bit_lookup;  // `none`: as fast as memory
  // A linear and its adapter are one function of autograd that keeps their 16-bit input alone, and
  // an adapted MLP is one that keeps gate and up: backward makes the product of both again and
  // writes gradients over them (Unsloth). PEFT's own modules run where adapters have dropout, and
  // DoRA's.
  bool fuses_adapters = false;
  bool adapts_experts = false;        // adapters on the MLP are on every routed expert as well
  bool sums_expert_adapters = false;  // ... where all experts are one tensor, by their sum with it
  // FSDP2 wraps one rank, too: it copies fp32 weights to 16 bits unit by unit, without a gather.
  bool wraps_one_rank = false;
  // A reference model is wrapped as the trained one is, with gradient buffers that nobody fills.
  bool reference_has_gradients = false;
  bool adapts_head = false;  // "head" among the targets is an adapter beside it
  bool keeps_replaced_modules =
      false;                        // a module that is trained whole is a copy beside the frozen
                                    // one (PEFT modules_to_save)
  bool unties_embeddings = false;   // tied tables are loaded as two
  bool ties_over_stages = true;     // tied tables may lie on two pipeline stages
  bool quantized_sharding = false;  // 4-bit weights can be sharded (bf16 quant storage)
  // Their constants are sharded, gathered and offloaded with them (torchao's NF4Tensor).
  // bitsandbytes' quant_state is no parameter: it stays, whole, on every GPU.
  bool moves_constants = false;
  bool expandable_segments = false;  // PYTORCH_CUDA_ALLOC_CONF that its launcher sets; PyTorch has
                                     // them on NVIDIA GPUs only
  int roundup_power2_divisions = 0;  // the same; 0: off
  bool records_streams = false;      // collectives mark what they read: freed, it waits for the GPU
  bool reads_lengths = false;        // each layer's attention asks the GPU for the longest sequence
  int library_workspaces = 0;  // cuBLAS workspaces that its own matmul library holds as tensors,
                               // beside PyTorch's (Transformer Engine)
  int grouped_workspaces = 0;  // and more, where the model has experts
  bool gathers_flat_copies = false;   // ZeRO-1 gathers stepped weights through flat copies of them
  bool keeps_gather_buffers = false;  // SP gathers into two buffers that stay for the whole run
  bool holds_stage_outputs = false;   // what a pipeline stage sent stays until its backward has run
  bool whole_stage_outputs = false;   // not cut over the tensor ranks, which have the same
  // What a stage receives, activations and gradients, comes into one buffer each, which is made
  // once and copied out for every microbatch.
  bool keeps_receive_buffers = false;
  bool registers_causal_masks = false;  // runs the models' own code (Transformer::causal_mask_rows)
  bool rounds_stochastically = false;   // what the optimizer makes of 16-bit weights, on average
  bool lengths_vary = false;  // fine-tuning batches are padded to their own longest sequence only
  bool cuts_samples = false;  // longer ones than the limit are cut to it; else they are left out
  int world_groups = 0;       // NCCL groups over all ranks beside those of the plan's axes
  bool connects_at_once = false;      // NCCL before 2.22: every communicator has rings and trees
  bool eager_module_loading = false;  // CUDA before 11.7: all kernels of a library are loaded
  bool pads_vocabulary = false;       // to a multiple of vocabulary_multiple x TP
  int vocabulary_multiple = 1;
  double host_us_per_kernel = 0;  // [us] CPU time to issue one kernel; 0: the profile's
  // Checkpoints lie around the units of FSDP1 and are reentrant: the pass that computes a unit
  // again gathers it and lets it go, before backward gathers it. ZeRO-3 keeps what is needed again
  // within so many elements of modules that run before.
  bool checkpoints_gather_again = false;
  std::int64_t fetch_reuse_elements = 0;  // 0: all of it
  // ZeRO-3 fetches the weights of modules, so many elements or more in a message; 0: of a layer.
  std::int64_t fetch_elements = 0;
  double host_us_per_sharded_module = 0;    // [us] of ZeRO-3's hooks around a module, each pass
  double host_us_per_sharded_unit = 0;      // [us] of FSDP around a unit, a block, each way
  double host_us_per_reduction = 0;         // [us] of ZeRO-3 for each bucket of gradients
  double host_us_per_gradient = 0;          // [us] of ZeRO-1's hooks, in a backward pass
  double host_us_per_gradient_stage_2 = 0;  // [us] of ZeRO-2's
  double host_us_per_stepped_tensor = 0;    // [us] of clipping, update and zeroing
  double host_us_per_read_tensor = 0;       // [us] of the norm at stages 1 and 2, of each it steps
  double host_us_per_read_tensor_stage_3 = 0;  // [us] of ZeRO-3's, of each part
  double host_us_per_checked_tensor = 0;  // [us] more where it is looked at for infinity and NaN
  bool loads_whole_model_on_gpu = false;  // while loading, beside the shard, on every rank
  // Embedding and head are made fp32, one after the other, and 16 bits again, unless ranks share
  // the weights.
  bool widens_tables_on_load = false;
  bool loads_every_rank_on_host = false;  // each local rank reads its own copy of the weights
  // Of one process: device_map sends every tensor to the GPU as it is read.
  bool loads_alone_on_gpu = false;
  std::string optimizer = "adamw";

  // What a question leaves out when it names this framework.
  DType compute = DType::bf16;
  // Of plans that split the model and shard nothing of it, where FSDP alone lowers precision to
  // 16 bits.
  std::optional<DType> compute_unsharded;
  int default_zero_stage = 0;             // with more than one data-parallel rank
  std::optional<int> default_vocabulary;  // of its usual tokenizer
  std::optional<int> default_microbatch;  // sequences per GPU and pass
  std::optional<int> default_sequence;    // tokens
  bool default_dropout = false;           // GPT-style models train with dropout unless told not to
  int adapter_rank = 8;
  std::string adapter_targets = "all-linear";
  double adapter_dropout = 0;
  Quantization default_quantization = Quantization::nf4;  // of qlora
  StageBalance stage_balance = StageBalance::even;
  ContextKind context_kind = ContextKind::ring;
  ContextMerge context_merge = ContextMerge::fused_half;  // of a ring
  bool context_in_order = false;  // ranks of a ring hold one stretch each: the last sees all others
  MemoryKind memory_reported_as = MemoryKind::device;
  MemoryStage memory_of_stage = MemoryStage::worst;

  // What this framework can run; a plan outside is refused with the reason. Empty: every method.
  std::vector<Method> methods;
  bool supports_tensor = true, supports_pipeline = true, supports_context = true,
       supports_expert = true;
  int max_zero_stage = 3;
  // The least ZeRO stage but 0 that its code has: FSDP shards gradients and weights with the
  // optimizer's states. All that a search tries; a plan that is stated may say less, as a what-if.
  int least_zero_stage = 1;
  // Of pipelines, rows of pipeline_schedule: what its code has, which is all that a search tries; a
  // plan that is stated may say another, as a what-if. Empty: not read.
  std::vector<std::string> schedules;
  std::vector<FittedField> fitted;  // of the numbers above
  Provenance provenance;

  bool is_named_as_engine_by(const std::string& word) const {
    return is_engine &&
           std::find(match_trainer.begin(), match_trainer.end(), word) == match_trainer.end();
  }
  // Whether collectives of tensor parallelism lie behind kernels, where nobody says.
  bool overlaps_tensor(bool mixture, DType format) const {
    return overlap_tensor_comm && (overlap_tensor_in_mixtures || !mixture) &&
           (overlap_tensor_in_four_bits || format != DType::nvfp4);
  }
  bool runs(Method method) const {
    return methods.empty() || std::find(methods.begin(), methods.end(), method) != methods.end();
  }
  Bytes gradient_bucket_at(int zero_stage) const {
    return zero_stage == 2 ? gradient_bucket_stage_2.value_or(gradient_bucket) : gradient_bucket;
  }
};

// The row as it behaves for this method and number format: fp32 computes with fp32 weights, fp16
// may keep 16-bit gradients and convert them while stepping, adapters beside quantised weights may
// have another format. What needs the framework afterwards needs no such question any more.
Framework resolved_for(Framework row, Method method, DType compute);

// Why this framework cannot train so, and what it can do; nothing where it can.
std::optional<std::string> method_refusal(const Framework& framework, Method method);

// The row that free text names: the longest `match` found in it as a whole word, of a trainer if it
// names one, else of an engine; then the row that refines it where the note holds one of its words,
// and so on. nullptr where nothing is named.
const Framework* framework_meant(const std::vector<Framework>& rows, std::string_view text,
                                 std::string_view note = {});

}  // namespace shardwise
