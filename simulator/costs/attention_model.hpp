// AttentionModel: softmax attention, forward and backward, fused or with stored scores.
//
// Fused kernels (scores never leave the chip). A thread block takes `tile` queries of one head
// through all keys that they see; its work is counted in query-key pairs. With P visible pairs per
// head, h heads, b sequences, q queries and R the rate that long sequences reach,
//
//   total   = b h (P + [causal] q tile / 2 + q ramp)         the diagonal tile is computed whole
//   longest = tile (keys + ramp) / lone block rate           one block on a multiprocessor of its
//   own
//   time    = start + c d max(total / SMs, longest) / (R / SMs),  c = 4 forward, 10 backward
//
// For many heads this is R L / (L + ramp) with L the mean number of keys, which follows the
// published curves of FlashAttention-2 and -3 to a few per cent; `longest` is what few heads
// (tensor parallelism) cost. FLOPs: 4 b h d P forward, 2.5 times that backward (arXiv 2307.08691,
// section 4.1).
//
// PyTorch's memory-efficient kernel has a block for each head backward, and for each part that the
// head's keys are split into. Where it keeps the sums of the keys' gradients in memory (heads above
// 128 wide; above 64 on chips of less shared memory) it splits them no further than into 200 blocks
// in all (`split_blocks`), all of one length, for a split takes every so many-th tile of keys:
//
//   s = 200 / b h rounded down, at least 1;   longest = [b h s / SMs] total / (b h s)
//
// where [] is the number of blocks of the busiest multiprocessor (PyTorch @00afd8f2 aten/src/ATen/
// native/transformers/cuda/attention_backward.cu, "Keys splitting heuristic"; mem_eff_attention/
// kernel_backward.h, kNeedsAccumGradK and key_start).
//
// With fp32 operands PyTorch has its memory-efficient kernel only. Its products run three times in
// TF32 from Ampere on and on the CUDA cores before (PyTorch @1f1047b760 aten/src/ATen/native/
// transformers/cuda/mem_eff_attention/gemm_kernel_utils.h, DefaultGemmType). The profile has their
// rate from Ampere on; where it has none, that of plain products is assumed.
//
// Operands of 8 bits with scales of blocks (MXFP8) have a cuDNN kernel of their own, whose rates
// are of the dense 8-bit rate. Its backward pass knows no windows: it computes all q x keys pairs.
//
// Eager attention is its matrix products plus the traffic of the scores in between.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "catalog/profile.hpp"
#include "simulator/costs/gemm_model.hpp"
#include "simulator/costs/memory_bound_model.hpp"
#include "simulator/graphs/operators.hpp"

namespace shardwise {

// Query-key pairs that one head of one sequence computes. Causal attention with more keys than
// queries is a balanced share of a longer sequence: half of the pairs. With fewer keys than queries
// `keys` is a sliding window, or where it `restarts` a chunk: the sequence is cut into such, and
// into what remains.
double visible_pairs(std::int64_t queries, std::int64_t keys, bool causal, bool restarts = false);

// The same of one kernel of `work`: of the whole sequence's, one rank's share.
double visible_pairs(const AttentionWork& work);

// What Q, K, V, O and, backward, their gradients weigh.
Bytes tensor_bytes(const AttentionWork& work);

// How a framework runs attention: absent, PyTorch's own choice for the GPU.
struct AttentionChoice {
  std::optional<FusedAttention> fused;
  KernelStyle style = KernelStyle::eager;  // of the softmax where scores are stored
  ChipLoad load = {};
  std::optional<DType> half =
      std::nullopt;  // 16-bit format of stored scores; absent: the one that the GPU has
  std::optional<LibraryRelease> cudnn = std::nullopt;  // absent: one of today
};

class AttentionModel {
 public:
  AttentionModel(const Gpu& gpu, const Profile& profile, const AttentionChoice& choice = {});

  Seconds time(const AttentionWork& work) const;

  // The kernel that `flash` stands for on this GPU: the one asked for where the family runs it.
  FusedAttention flash_kernel() const { return flash_; }

 private:
  struct Kernel {
    std::array<AttentionRow, 6> rows{};
    std::size_t row_count = 0;  // 0: the family does not run it
    int tile_queries = 128;
    FlopsPerSecond dense;  // of its operands
  };
  FusedAttention available(FusedAttention wanted) const;
  Seconds fused_time(const AttentionWork& work, const Kernel& kernel) const;
  // Query-key pairs of the multiprocessor with the most blocks, over the rate that those reach.
  double longest_blocks(const AttentionWork& work, const Kernel& kernel, const AttentionRate& rate,
                        double total) const;
  Seconds eager_time(const AttentionWork& work) const;

  std::array<Kernel, fused_attention_count> kernels_{};
  FusedAttention flash_ = FusedAttention::flash2;
  double multiprocessors_ = 1;
  FlopsPerSecond single_;  // fp32 operands, where the profile does not say
  double rate_scale_ = 1;  // of this chip against its family's reference
  std::size_t style_ = 0;
  DType half_ = DType::bf16;
  EagerAttentionTraffic traffic_;
  GemmModel gemm_;
  MemoryBoundModel memory_;
};

}  // namespace shardwise
