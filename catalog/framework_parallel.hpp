// How a framework splits layers over tensor, context and pipeline ranks, and what these exchange.
#pragma once

#include "catalog/dtype.hpp"
#include "catalog/framework_kinds.hpp"

namespace shardwise {

// Tensor, sequence, context and pipeline parallelism.
struct FrameworkParallel {
  bool sequence_parallel = true;      // with TP > 1
  bool regathers_sequence = true;     // SP: backward gathers again what it did not save
  bool keeps_gather_buffers = false;  // SP gathers into two buffers that stay for the whole run
  bool overlap_tensor_comm = false;   // async TP / user-buffer overlap
  // That in mixtures of experts too, and where it computes in NVFP4.
  bool overlap_tensor_in_mixtures = true, overlap_tensor_in_four_bits = true;
  bool overlap_tensor_backward = true;  // input-gradient collectives behind the weight gradient
  bool copies_linear_inputs = false;    // TP without SP: each column-parallel linear copies
                                        // what it reads
  bool exchanges_per_linear = false;    // TP: linears that read one tensor each gather it, or sum
                                        // its gradient, for themselves
  bool sums_gate_and_up_apart = false;  // TP without SP: the same of these two only
  bool dtensor = false;          // TP by PyTorch's DTensor: what it gathers or scatters along
                                 // the sequence is copied once more, a loss on cut logits is
                                 // made by kernels of its own
  bool whole_tables = false;     // TP by hand, dense loss: embedding and head are not cut
  bool pads_vocabulary = false;  // to a multiple of vocabulary_multiple x TP
  int vocabulary_multiple = 1;
  bool overlap_pipeline_comm = true;
  bool overlap_interleaved_comm = true;       // the same with several model chunks per stage
  bool partitions_pipeline_messages = false;  // without SP: a tensor rank sends its share of what
                                              // they all hold, and the receivers gather it
  bool holds_stage_outputs = false;  // what a pipeline stage sent stays until its backward has run
  bool whole_stage_outputs = false;  // not cut over the tensor ranks, which have the same
  // What a stage receives, activations and gradients, comes into one buffer each, which is made
  // once and copied out for every microbatch.
  bool keeps_receive_buffers = false;
  bool ties_over_stages = true;  // tied tables may lie on two pipeline stages
  StageBalance stage_balance = StageBalance::even;
  ContextKind context_kind = ContextKind::ring;
  ContextMerge context_merge = ContextMerge::fused_half;  // of a ring
  bool context_in_order = false;  // ranks of a ring hold one stretch each: the last sees all others

  // Whether collectives of tensor parallelism lie behind kernels, where nobody says.
  bool overlaps_tensor(bool mixture, DType format) const {
    return overlap_tensor_comm && (overlap_tensor_in_mixtures || !mixture) &&
           (overlap_tensor_in_four_bits || format != DType::nvfp4);
  }
};

}  // namespace shardwise
