// What a byte of GPU memory is for. The ledger files every allocation under one of these.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardwise {

enum class MemoryCategory : std::uint8_t {
  weights,       // base weights as stored on this rank, quantised or not
  quantization,  // absmax and other constants of quantised weights, dequantised blocks
  adapters,      // LoRA/DoRA weights
  gradients,
  master_weights,
  optimizer_states,
  gathered_parameters,  // unsharded copies and all-gather buffers (ZeRO-3, FSDP)
  communication,        // gradient buckets, reduce-scatter inputs, TP gathers
  activations,          // saved for backward, per microbatch in flight
  recompute,            // activations that live only while a block is recomputed
  temporaries,          // kernel outputs that nobody saves, gradients of activations, what the
                        // optimizer makes for a step
  logits,               // [tokens, vocabulary] copies of head and loss
  workspace,            // cuBLAS and friends, inside the allocator
  context,              // CUDA context and loaded kernels, outside the allocator
  nccl,                 // communicator buffers, outside the allocator
  framework,            // what the framework itself keeps
  cache,                // reserved by the allocator, not allocated: rounding and fragmentation
};

inline constexpr std::array<std::string_view, 17> memory_category_names{"weights",
                                                                        "quantization",
                                                                        "adapters",
                                                                        "gradients",
                                                                        "master_weights",
                                                                        "optimizer_states",
                                                                        "gathered_parameters",
                                                                        "communication",
                                                                        "activations",
                                                                        "recompute",
                                                                        "temporaries",
                                                                        "logits",
                                                                        "workspace",
                                                                        "context",
                                                                        "nccl",
                                                                        "framework",
                                                                        "cache"};
inline constexpr std::size_t memory_category_count = memory_category_names.size();

constexpr std::string_view name(MemoryCategory c) {
  return memory_category_names[static_cast<std::size_t>(c)];
}

using MemoryBreakdown = std::array<std::int64_t, memory_category_count>;  // bytes, by category

}  // namespace shardwise
