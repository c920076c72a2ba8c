// The code from the head to the loss, and what the training loop keeps of the output.
#pragma once

#include <cstdint>
#include <optional>

#include "catalog/framework_kinds.hpp"
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

// Head and loss.
struct FrameworkLoss {
  LossKind kind = LossKind::dense;
  LossKind fused = LossKind::fused_linear;  // its head and loss in one kernel, where asked for
  // cut: what the gradient of hidden states or head takes of the product that makes the logits,
  // each. The kernel adds both block by block, through locks, and may leave out what 16 bits round
  // to nothing.
  double cut_gradient_share = 0;
  int chunks = 8;              // chunked only
  std::optional<Bytes> slice;  // chunked: as few slices as keep the fp32 logits of one within this
  // chunked: the loop takes each slice back at once, so that the head's gradient is summed while
  // the others are to come, beside their logits
  bool slices_go_back = false;
  // chunked, vocab_parallel: as few slices as keep each within so many tokens
  std::optional<int> slice_tokens;
  // fused_linear: of a slice, if not by Liger's rule; stated by a run, by no row
  std::optional<int> fused_slice_tokens;
  std::optional<double> slice_logit_bytes;  // live per logit of a slice, if not dense's
  std::optional<double> slice_moved_bytes;  // moved of a logit in all, if not cross-entropy's
  bool copies_head = false;         // chunked: a slice's product is of an fp32 copy of the head
  bool recomputes_slices = false;   // chunked: each slice's forward is checkpointed
  bool keeps_slices = false;        // chunked: none goes back before all are through
  bool makes_slices_first = false;  // ... and their logits are all there before a loss is
  // fused_linear: what a slice gives to the head's gradient is added to it by kernels of its own.
  // Stated by a plugin (Liger 0.6.2 to 0.8.2), by no row.
  bool adds_head_slices_apart = false;
  // dense, adapters alone: tokens of a sequence that head and loss take at once; all logits are
  // kept, but only a slice of them has a gradient
  std::optional<int> head_slice;
  // dense: called of one slice of rows after another of whole logits, whose gradients are joined
  // when all have gone back (litgpt's chunked_cross_entropy).
  bool takes_slices = false;
  bool upcasts = true;          // dense, chunked: logits go to fp32 before the loss
  bool upcasts_itself = false;  // the fp32 copy is the loss's own: the model's logits stay
  // dense, autocast: cross-entropy is called under it, of the head's own 16-bit logits.
  bool under_autocast = false;
  int fp32_temporaries = 0;           // fp32 copies beyond those of its kind, forward only
  bool gathers_logits = false;        // dense: every tensor rank gathers all logits, and takes the
                                      // whole loss
  bool z_loss = false;                // dense: the square of each row's log Z joins the loss
  bool compiled = false;              // with compiled kernels: loss fused over 16-bit logits
  bool compiled_alone = false;        // also beside eager kernels
  bool scatters_labels = false;       // compiled, PyTorch until 2.4
  bool returns_fp32_logits = false;   // vocab_parallel: the fp32 copy is the model's own, and all
                                      // that its loss gets
  bool joins_context_logits = false;  // vocab_parallel: the two pieces of a sequence that a rank of
                                      // context parallelism has are copied into one
  // What is compiled returns its logits beside its loss. Their gradient is nobody's, so autograd
  // makes it, of zeros, for the compiled backward pass to add to.
  bool returns_logits = false;
  LoggedLogits logged;               // of losses that get all logits at once
  bool output_holds_logits = false;  // the training loop keeps the model's output
  bool output_holds_keys = false;    // the keys and values of all layers among it (use_cache)
  OutputLife output_life = OutputLife::backward;
};

}  // namespace shardwise
